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

/// A note for a file whose rows are probably no assets.
pub fn other_than_assets(options: &Import, names: &[String]) -> Option<String> {
    let plain: Vec<String> = names.iter().map(|name| plain(name)).collect();
    let has = |headings: &str| headings.split_whitespace().filter(|heading| plain.iter().any(|name| name == heading)).count();
    let is_kind =
        |(kind, headings, needed): &(&str, &str, usize)| has(headings) >= *needed && (*kind == LICENCES || has(SERIALS) == 0);
    let (kind, ..) = KINDS.iter().find(|kind| is_kind(kind)).filter(|_| !options.users && has(TAGS) == 0)?;
    Some(format!("This looks like a list of {kind}. The command makes an asset of each row: import it only if that is wanted."))
}
