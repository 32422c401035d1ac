//! What is proposed for whole files, and that an import takes it.

use super::*;

fn suggest_with(kind: Kind, text: &str, known: &LookedUp, given: &[(&str, &str)]) -> Suggestion {
    let reading = Reading::parse(given.iter().copied()).unwrap_or_default();
    let format = if text.starts_with(['{', '[']) { Format::Ndjson } else { Format::Csv };
    let sheet = Sheet::read(kind, text, format, &reading);
    Survey::of(kind, sheet, Decided { reading, ..Decided::default() }).suggest(known)
}

fn suggest(text: &str) -> Suggestion {
    let types = [("LAP", "Laptop"), ("SW", "Software license"), ("MON", "Monitor")];
    let types = types.map(|(code, name)| (code.to_owned(), name.to_owned())).to_vec();
    suggest_with(
        Kind::Assets,
        text,
        &LookedUp { types: Some(types), unknown_people: Some(Vec::new()), ..LookedUp::default() },
        &[],
    )
}

fn parameters(suggestion: &Suggestion) -> Vec<String> {
    suggestion.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect()
}

/// Returns the headings of the columns that are left to people.
fn open(suggestion: &Suggestion) -> Vec<&str> {
    let is_mapped = |heading: &str| {
        let ignored = Mapping::of(heading, None).to_string();
        suggestion.parameters.iter().any(|(name, value)| *name == "map" && *value == ignored)
    };
    let columns = suggestion.columns.iter().filter(|column| column.field.is_none() && !is_mapped(&column.heading));
    columns.map(|column| column.heading.as_str()).collect()
}

fn has_doubt(suggestion: &Suggestion, part: &str) -> bool {
    suggestion.doubts.iter().any(|doubt| doubt.contains(part))
}

#[test]
fn a_column_without_cells_takes_no_field_from_one_with_cells() {
    let leihs = "Product;Name;Building;Room;Owner;Serial Number;Borrower First name;Borrower Last name;Borrower Personal ID\n\
                 Beamer;;HG;A1;IT-Zentrum;X1;Jane;Doe;17\nBeamer;;HG;A2;IT-Zentrum;;Jane;Doe;17\n";
    let suggestion = suggest(leihs);
    assert_eq!(
        parameters(&suggestion),
        [
            "delimiter=semicolon",
            "map=Product=name",
            "map=Name=",
            "map=Building / Room=location",
            "map=Serial Number=serial_number",
            "map=Borrower First name + Borrower Last name=assigned_to_name",
            "match=serial_number",
        ]
    );
    assert_eq!(open(&suggestion), ["Owner", "Borrower Personal ID"]);
    assert!(has_doubt(&suggestion, "Owner: neither names nor e-mail addresses of users, such as IT-Zentrum."), "{suggestion:#?}");
    let school = "Název,Typ,Inv. číslo,SN\n,PO Acer,S-1,\n,Acer Swift,S-2,\n,bedničky,S-3,\n";
    let expected = ["map=Název=", "map=Typ=name", "map=Inv. číslo=asset_tag", "map=SN=serial_number", "match=asset_tag"];
    assert_eq!(parameters(&suggest(school))[..5], expected);
    let twice = suggest("Name,Bezeichnung,Seriennummer,Serial\n,a,,S1\n,b,,S2\n");
    assert_eq!(
        parameters(&twice),
        ["map=Name=", "map=Bezeichnung=name", "map=Seriennummer=", "map=Serial=serial_number", "match=serial_number"]
    );
    let own = suggest("name,Bezeichnung,location\n,a,\n");
    assert_eq!(parameters(&own), ["map=name=", "map=Bezeichnung=name"]);
}

#[test]
fn holders_are_never_dropped_without_a_word() {
    for (text, placed, left) in [
        ("Name,Assigned To\na,jdoe\nb,Grace\n", None, vec!["Assigned To"]),
        ("Name,Besitzer\na,IT-Zentrum\nb,Mensa\n", None, vec!["Besitzer"]),
        ("Name,Owner\na,n/a\nb,-\nc,none\nd,Ada Lovelace\n", Some("map=Owner=assigned_to_name"), vec![]),
        (
            "Name,Checked Out To,Email\na,Ada L,a@x.de\nb,Conf Room 2,\n",
            Some("map=Email=assigned_to_email"),
            vec!["Checked Out To"],
        ),
        ("Name,Checked Out To,Email\na,Ada L,a@x.de\n", Some("map=Checked Out To="), vec![]),
        ("name,assigned_to\na,Ada Lovelace\nb,\n", Some("map=assigned_to=assigned_to_name"), vec![]),
        ("name,assigned_to\na,ada@x.de\n", Some("map=assigned_to=assigned_to_email"), vec![]),
        ("name,assigned_to\na,ada\n", None, vec!["assigned_to"]),
        ("name,assigned_to_email\na,ada\n", None, vec![]),
    ] {
        let suggestion = suggest(text);
        assert_eq!(open(&suggestion), left, "{text}");
        assert!(
            placed.is_none_or(|placed| parameters(&suggestion).iter().any(|found| found == placed)),
            "{text}: {suggestion:#?}"
        );
    }
    let unplaced = suggest("Name,Checked Out To,Email\na,Ada L,a@x.de\nb,Conf Room 2,\n");
    assert!(has_doubt(&unplaced, "Checked Out To: Email has the e-mail addresses of users, but not in 1 row with a name."));
    assert!(!has_doubt(&suggest("Name,Owner\na,n/a\n"), "would have a user"));
    let uuid = suggest("name,assigned_to\na,019acfec-92ec-76d7-95f8-7c08cc941cf6\n");
    assert_eq!(parameters(&uuid), [""; 0]);
    let hidden = suggest_with(Kind::Assets, "name,E-Mail\na,a@x.de\n", &LookedUp::default(), &[]);
    assert!(has_doubt(&hidden, "users:read"));
}

#[test]
fn placeholders_are_proposed_to_be_empty_cells() {
    let text =
        "Name;Serial Number;Location;Cost Center;Manufacturer\nA;NU1;n/a;N/A;-\nB;NU2;#N/A;null;NULL\nC;n/a;101;4711;unknown\n";
    let found = parameters(&suggest(text));
    let values: Vec<&String> = found.iter().filter(|parameter| parameter.starts_with("value=")).collect();
    assert_eq!(
        values,
        [
            "value=location:#N/A=",
            "value=location:n/a=",
            "value=custom_fields.cost_center:N/A=",
            "value=custom_fields.cost_center:null=",
            "value=manufacturer:-=",
            "value=manufacturer:NULL=",
            "value=manufacturer:unknown=",
        ]
    );
}

#[test]
fn unknown_types_are_left_to_people() {
    let text = "Name,Kategorie\na,Laptop\nb,laptops\nc,Notebook\nd,MON\ne,Software licenses\n";
    let suggestion = suggest(text);
    assert_eq!(
        parameters(&suggestion)[2..],
        ["value=asset_type_code:Laptop=LAP", "value=asset_type_code:Software licenses=SW", "value=asset_type_code:laptops=LAP"]
    );
    assert!(has_doubt(&suggestion, "Kategorie: 1 value is no type of assets: Notebook."), "{suggestion:#?}");
    let hidden = suggest_with(Kind::Assets, text, &LookedUp::default(), &[]);
    assert_eq!(parameters(&hidden)[2..], [""; 0]);
    assert!(has_doubt(&hidden, "without the scope catalog:read, it isn't known whether these are types"), "{hidden:#?}");
}

#[test]
fn prices_that_can_be_read_in_two_ways_are_left_to_people() {
    for cells in ["1.249\n2.500\n999", "\"1,249\"\n999\n850"] {
        let text = format!("Price\n{cells}\n");
        let suggestion = suggest(&text);
        assert_eq!(open(&suggestion), ["Price"], "{text}");
        assert!(has_doubt(&suggestion, "`decimal=comma`"));
        let decided = suggest_with(Kind::Assets, &text, &LookedUp::default(), &[("decimal", "comma")]);
        assert_eq!(parameters(&decided), ["map=Price=purchase_price", "decimal=comma"]);
    }
    assert_eq!(parameters(&suggest("name,purchase_price\na,1.249\n")), [""; 0], "an export has such prices");
}

#[test]
fn only_an_export_is_matched_by_its_ids() {
    let id = "019acfec-93eb-7044-a3b4-1aa4086b8523";
    let matched = |text: String| suggest(&text).parameters.last().map(|(_, value)| value.clone());
    let export = suggest(&format!(
        "id,asset_tag,name,serial_number,location,last_seen_at,updated_at\n{id},T-1,a,S1,unknown,,2024-01-01T00:00:00Z\n"
    ));
    assert_eq!((parameters(&export), open(&export)), (vec!["match=id".to_owned()], vec![]));
    assert_eq!(matched(format!("id,location\n{id},Berlin\n")).as_deref(), Some("id"));
    let other = suggest(&format!("id,name,serial_number,updated_at\n{id},a,S1,2024-01-01T00:00:00Z\n"));
    assert_eq!(parameters(&other), ["map=id=", "map=updated_at=", "match=serial_number"]);
}

#[test]
fn damaged_files_have_a_doubt() {
    for (text, doubt) in [
        ("Name;Serial\nA;1\nName;Serial\nB;2\n", "Line 3 repeats the header"),
        (",Name,\n1,A,\n2,B,zzz\n", "Column 1 has cells but no heading"),
        ("{\"value\":[{\"Name\":\"J\"}]}\n", "one object, not an array of objects. Save only the array in \"value\""),
        ("{\n\"value\": [\n{\"Name\":\"J\"}\n]\n}\n", "4 lines are not an object."),
        ("name,serial_number\n", "The file has no rows."),
        ("BÃ¼ro\nx\n", "letters are garbled"),
        ("Name,Menge\nx,3\n", "Menge: 1 row stands for more than one"),
    ] {
        let suggestion = suggest(text);
        assert!(has_doubt(&suggestion, doubt), "{text}: {:?}", suggestion.doubts);
    }
    assert_eq!(parameters(&suggest(",Name,\n1,A,\n2,B,zzz\n")), ["map=#1=", "map=Name=name", "map=#3="]);
    let wide: Vec<String> = (1..=240).map(|number| format!("X{number}")).collect();
    let long = format!("{}\n{}", wide.join(","), format!("{}\n", wide.join(",")).repeat(1_100));
    let suggestion = suggest(&long);
    assert!(has_doubt(&suggestion, "first 200 columns") && has_doubt(&suggestion, "first 1000 of 1100 rows"));
}

#[test]
fn parameters_that_an_import_refuses_are_told() {
    let given = [("map", "nope=name"), ("set", "nope=1"), ("value", "status:x=in_use")];
    let suggestion = suggest_with(Kind::Assets, "Name\na\n", &LookedUp::default(), &given);
    for doubt in ["map: \"nope\": the file has no such column", "set: nope: is not a field", "value: status:x: no column is this"]
    {
        assert!(has_doubt(&suggestion, doubt), "{doubt}: {:?}", suggestion.doubts);
    }
}

#[test]
fn places_of_an_export_are_known_despite_their_apostrophes() {
    let known = LookedUp { places: Some(vec!["+49 Berlin".to_owned()]), ..LookedUp::default() };
    let suggestion = suggest_with(Kind::Assets, "name,location\na,'+49 Berlin\n", &known, &[]);
    assert!(!has_doubt(&suggestion, "new"), "{:?}", suggestion.doubts);
}

/// Headings and cells with signs that parameters give a meaning.
#[test]
fn what_is_proposed_is_accepted() {
    for text in [
        "#7,X\\=Y,A + B,A,B,C:\\dir,\n1,2,3,4,5,6,7\n",
        "First/Name,Last+Name,E-Mail\nAda,L,a@x.de\n",
        "Site/x,Raum\nBerlin,2\n",
        "Site,Raum,Site / Raum\nBerlin,2,3\n",
        "sep=;\nName;x\na;b\n",
        "sep=|\nName;x\na;b\n",
        "Status,Kategorie,Serial,Location\na:b=c,#1=x\\,-,n/a\nd,e,f,g\n",
    ] {
        for kind in [Kind::Assets, Kind::Users] {
            let suggestion = suggest_with(kind, text, &LookedUp::default(), &[]);
            let ignored: Vec<String> = open(&suggestion).iter().map(|heading| Mapping::of(heading, None).to_string()).collect();
            let given = suggestion.parameters.iter().map(|(name, value)| (*name, value.as_str()));
            let given = given.chain(ignored.iter().map(|map| ("map", map.as_str()))).filter(|(name, _)| *name != "match");
            let reading = Reading::parse(given).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
            let sheet = Sheet::read(kind, text, Format::Csv, &reading);
            let resolved = Columns::resolve(kind, &sheet.names, &sheet.repeated, &reading, None);
            assert!(resolved.is_ok(), "{text}: {resolved:?}");
        }
    }
}
