//! Files of other things than assets, recognized by their headings.

use crate::import::args::Import;
use crate::import::columns::suggest::plain;

/// A kind of thing, with headings that only its files have, and how many of them are needed.
const KINDS: [(&str, &str, usize); 3] = [
    (
        LICENCES,
        "seats licenseseats licensedtoname licensedtoemail licensename productkey reassignable maintained terminationdate lizenzschlüssel \
         lizenzname",
        1,
    ),
    ("places", "address address2 street city state zip postalcode country parentlocation ldapou straße plz ort stadt land", 3),
    ("accessories or consumables", "minqty minamt minamount minimumqty minimumquantity minimumamount itemno mindestbestand", 1),
];
const LICENCES: &str = "licences";
/// Headings that say that there are assets in spite of that.
const TAGS: &str = "assettag inventarnummer";
/// Likewise, but licences have some, too.
const SERIALS: &str = "serialnumber serialno serial seriennummer";

/// Headings of lists of people. A list of assets has some of them, too.
const PEOPLE: &str = "firstname givenname vorname lastname surname nachname displayname fullname username email emailaddress mail \
                      userprincipalname jobtitle employeenumber employeenum activated isactive accountenabled role";
const MANY_OF_PEOPLE: usize = 3;
/// Headings that no list of people has.
const THINGS: &str = "name itemname assetname devicename computername hostname device category model modelname modelnumber \
                      manufacturer status purchasedate purchasecost purchaseprice";
/// Headings of the number of things that a row stands for.
pub const QUANTITIES: [&str; 2] = ["quantity", "qty"];

/// The number of these headings that the file has.
fn number_of(headings: &str, names: &[String]) -> usize {
    let plain: Vec<String> = names.iter().map(|name| plain(name)).collect();
    headings.split_whitespace().filter(|heading| plain.iter().any(|name| name == heading)).count()
}

/// Whether the rows are probably people.
#[must_use]
pub fn is_list_of_users(names: &[String]) -> bool {
    let is_thing = [TAGS, SERIALS, THINGS].iter().any(|headings| number_of(headings, names) > 0);
    !is_thing && number_of(PEOPLE, names) >= MANY_OF_PEOPLE
}

/// A note for a file whose rows are probably no assets.
pub fn other_than_assets(options: &Import, names: &[String]) -> Option<String> {
    if !options.users && is_list_of_users(names) {
        return Some("This looks like a list of users: add --users. The command makes an asset of each row.".to_owned());
    }
    let has = |headings: &str| number_of(headings, names);
    let is_kind =
        |(kind, headings, needed): &(&str, &str, usize)| has(headings) >= *needed && (*kind == LICENCES || has(SERIALS) == 0);
    let (kind, ..) = KINDS.iter().find(|kind| is_kind(kind)).filter(|_| !options.users && has(TAGS) == 0)?;
    Some(format!("This looks like a list of {kind}. The command makes an asset of each row: import it only if that is wanted."))
}
