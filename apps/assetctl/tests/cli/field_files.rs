//! Imports small files as other systems export them and as spreadsheets damage them.

use crate::support::service::Service;
use crate::support::{Folder, counts};
use serde_json::{Value, json};
use std::path::Path;

/// Returns the standard output and standard error of `--suggest`.
fn suggest(service: &Service, path: &Path, options: &[&str]) -> (String, String) {
    let run = service.run(&[&["import", path.to_str().unwrap(), "--suggest"], options].concat()).ok();
    (run.stdout, run.stderr)
}

/// Imports a file with the suggested command and further options, run by a shell. Returns the summary.
fn import_as_suggested(service: &Service, path: &Path, options: &str) -> Value {
    let users: &[&str] = if options == "--users" { &["--users"] } else { &[] };
    let (command, _) = suggest(service, path, users);
    // The suggested command has `--users` already.
    let options = options.replace("--users", "");
    // What nothing places is ignored here.
    let command = command.replace("=?\"", "=\"");
    let run = service.paste(path.parent().unwrap(), &format!("{} {options} --json", command.trim_end()));
    assert!([0, 3].contains(&run.code), "{}{}", run.stdout, run.stderr);
    run.json()
}

#[test]
fn snipe_it_assets_with_an_unknown_holder() {
    let (service, folder) = (Service::start(), Folder::new());
    service.create("/users", &json!({"email": "ada@example.com", "display_name": "Ada"}));
    let text = "Company,Name,Asset Tag,Category,Manufacturer,Model,Model Number,Asset Notes,Purchase Date,Purchase Cost,Checkout Type,\
                Checked Out To: Username,Checked Out To: Email\n\
                A and Sons,Backhoe,ICC-1,Railings,Berge Inc,Nial,17VM80,some notes,2023-01-23,2266.13,,\"\",\"\"\n\
                \"B, C and D\",Dragline,WBH-2,Steel,\"B, B and H\",Chase,93IS2,,2022-11-14,1292.94,User,ada,ada@example.com\n\
                E Group,Excavator,NNH-3,Floor,P LLC,Chase,99FR,,2023-03-01,2300.71,User,gone,gone@example.com\n";
    let path = folder.file("assets.csv", text);
    let (command, notes) = suggest(&service, &path, &[]);
    assert!(command.contains("--match asset_tag") && command.contains("--create-unmatched"), "{command}");
    assert!(notes.contains("2 assets of 3 would have a user and be in_stock. Add a column with the status"), "{notes}");
    assert!(!notes.contains("--set status") && !command.contains("--set status"), "{notes}");
    assert!(
        notes.contains(
            "Category: 3 values are no types of assets: Floor, Railings, Steel. Create the types, or say which they are"
        ),
        "{notes}"
    );
    assert!(command.contains("--map Category=asset_type_code") && !command.contains("--value"), "{command}");
    assert_eq!(counts(&import_as_suggested(&service, &path, "--dry-run")), [0, 0, 0, 3]);
    let untyped = ["Floor", "Railings", "Steel"].map(|value| format!("--value asset_type_code:{value}=")).join(" ");
    let dry = import_as_suggested(&service, &path, &format!("{untyped} --dry-run"));
    assert_eq!(counts(&dry), [2, 0, 0, 1]);
    assert!(dry["refused_reasons"][0]["way_out"].as_str().unwrap().contains("--skip-bad \"Checked Out To: Email\""), "{dry}");
    let summary = import_as_suggested(&service, &path, &format!("{untyped} --skip-bad 'Checked Out To: Email'"));
    assert_eq!((counts(&summary), &summary["skipped_cells"]), ([3, 0, 0, 0], &json!(1)), "{summary}");
    assert_eq!(summary["skipped_cell_reasons"][0]["column"], "Checked Out To: Email");
    let again = import_as_suggested(&service, &path, &format!("{untyped} --skip-bad assigned_to_email --again"));
    assert_eq!((counts(&again), &again["skipped_cells"]), ([0, 0, 3, 0], &json!(1)), "{again}");
    let run = service.run(&["import", folder.file("names.csv", "name\na\n").to_str().unwrap(), "--skip-bad", "colour"]);
    let problem = "--skip-bad colour: no imported column or field has this name";
    run.tells(2, problem);
}

#[test]
fn snipe_it_assets_of_an_old_mac_with_empty_headings_and_shortened_numbers() {
    let (service, folder) = (Service::start(), Folder::new());
    let text = "Full Name,Email,item Name,,Model name,Model Number,Serial,Asset Tag,,Purchase Date,Purchase Cost,Status\r\
                ,,first,,m1,6.37702E+15,S-1,970-8,,4/5/16,\"133,289.59\",Ready to Deploy\r\
                ,,second,,m2,5.02E+18,8.93901E+18,544-0,,3/28/16,763.46,Archived\r";
    let path = folder.file("assets.csv", text);
    let (command, notes) = suggest(&service, &path, &[]);
    assert!(command.contains("--date-format MM/DD/YY") && command.contains("--map \"item Name=name\""), "{command}");
    assert!(notes.contains("has shortened 1 serial number, such as 8.93901E+18"), "{notes}");
    let summary = import_as_suggested(&service, &path, "--value status:Archived=scrapped");
    assert_eq!(counts(&summary), [1, 0, 0, 1], "{summary}");
    let refused = &summary["refused_reasons"][0];
    assert_eq!((&refused["column"], &refused["line"]), (&json!("Serial"), &json!(3)), "{refused}");
    assert_eq!(service.assets()[0]["purchase_price"], json!(133_289.59));
}

#[test]
fn snipe_it_users_have_their_names_in_two_columns() {
    let (service, folder) = (Service::start(), Folder::new());
    let text = "First Name,Last Name,email,User name,Location,VIP\nBlanche,O'Collopy,b@example.com,b0,Oslo,yes\nJessie,Le Primo,j@example.com,j1,Bern,no\n";
    let path = folder.file("users.csv", text);
    let (_, notes) = suggest(&service, &path, &["--users"]);
    assert!(!notes.contains("custom_fields") && !notes.contains("asset"), "{notes}");
    assert_eq!(counts(&import_as_suggested(&service, &path, "--users")), [2, 0, 0, 0]);
    let users = service.get("/users?email=j@example.com");
    assert_eq!(users["data"][0]["display_name"], "Jessie Le Primo");
    let held = folder.file(
        "held.csv",
        "Name,Asset Tag,Checked Out To: Email,Checked Out To: First Name,Checked Out To: Last Name\nDock,A-1,k@example.com,Kim,Lee\n",
    );
    assert_eq!(counts(&import_as_suggested(&service, &held, "--users")), [1, 0, 0, 0]);
    assert_eq!(service.get("/users?email=k@example.com")["data"][0]["display_name"], "Kim Lee");
    for (text, told) in [
        ("email\na@example.com\n", "Every new user needs a display_name,"),
        ("display_name\nAda\n", "Every new user needs an email,"),
    ] {
        let (_, notes) = suggest(&service, &folder.file("incomplete.csv", text), &["--users"]);
        assert!(notes.contains(told), "{notes}");
    }
}

/// Two registers with columns that are empty, or for things that an asset has no field for.
#[test]
fn registers_of_a_lending_office_and_a_school_come_in_with_the_suggested_command() {
    let (service, folder) = (Service::start(), Folder::new());
    service.create("/users", &json!({"email": "jane@example.com", "display_name": "Jane Doe"}));
    let leihs = folder.file(
        "leihs.csv",
        "Product;Version;Note;Inventory Code;Serial Number;Name;Building;Room;Owner;Initial Price;Warranty expiration;\
         Borrower First name;Borrower Last name\n\
         Beamer;EB-X14;;AV0001;X1234567;;HG;A.1/2;IT-Zentrum;1'637.05;05.03.2028;Jane;Doe\n\
         Beamer;EB-X14;;AV0002;;;HG;A 3;IT-Zentrum;80.00;05.03.2028;Jane;Doe\n",
    );
    let (command, notes) = suggest(&service, &leihs, &[]);
    assert!(command.contains("--map Note=") && command.contains("--map \"Owner=?\""), "{command}");
    assert!(notes.contains("Owner: neither names nor e-mail addresses of users, such as IT-Zentrum."), "{notes}");
    assert_eq!(counts(&import_as_suggested(&service, &leihs, "--create-unmatched")), [2, 0, 0, 0]);
    let school = folder.file(
        "school.csv",
        "Pavilon,IČ1,Inv. číslo,Název,Typ,SN,Datum pořízení,Cena\n,S,S-7087,,PO Acer Chromebook,,17.09.2020,14 790.00\n\
         ,S,S-1223,,bedničky repro,,28.12.2004,0.00\n,UP,UP-8158,,\"LCD 22\"\" Acer\",,20.11.2023,14 734.00\n",
    );
    assert_eq!(counts(&import_as_suggested(&service, &school, "")), [3, 0, 0, 0]);
    let names: Vec<Value> = service.assets().iter().map(|asset| asset["name"].clone()).collect();
    assert_eq!(names, ["Beamer", "Beamer", "PO Acer Chromebook", "bedničky repro", "LCD 22\" Acer"]);
    assert_eq!(service.assets()[0]["assigned_to_email"], "jane@example.com");
}

#[test]
fn lists_of_other_things_are_recognized() {
    let (service, folder) = (Service::start(), Folder::new());
    for (text, kind) in [
        ("Item name,serial number,Licensed To Name,seats,purchase cost\nOffice,K-1,Ada,5,$79.66\n", "licences"),
        ("name,address,city,state,country,zip\nOslo,Street 1,Oslo,,NO,0150\n", "places"),
        ("Name,Category,QTY,Min Amount,Purchase Cost\nMouse,Input,61,59,73.96\n", "consumables"),
    ] {
        let path = folder.file("list.csv", text);
        let (_, notes) = suggest(&service, &path, &[]);
        assert!(notes.contains(&format!("This looks like a list of {kind}")), "{notes}");
    }
    for header in ["name,serial number,city,state,country", "Full Name,Email,Username,Item Name,Asset Tag"] {
        let path = folder.file("list.csv", format!("{header}\na,b,c,d,e\n"));
        assert!(!suggest(&service, &path, &[]).1.contains("This looks like"), "{header}");
    }
}

#[test]
fn lists_of_users_are_recognized() {
    let (service, folder) = (Service::start(), Folder::new());
    service.create("/users", &json!({"email": "ada@example.com", "display_name": "Ada"}));
    let exported = folder.path("exported.csv");
    assert_eq!(service.run(&["export", "users", "-o", exported.to_str().unwrap()]).code, 0);
    let snipe_it = folder.file(
        "users.csv",
        "First Name,Last Name,email,Username,Location,Address,City,State,Country\nAda,L,ada@example.com,ada,Oslo,Street 1,Oslo,,NO\n",
    );
    for path in [&exported, &snipe_it] {
        let looks = "This looks like a list of users";
        let (_, notes) = suggest(&service, path, &[]);
        assert!(notes.contains(looks), "{notes}");
        assert!(!suggest(&service, path, &["--users"]).1.contains("looks like"));
        service.import(path, &[]).tells(2, looks);
    }
}

#[test]
fn quantities_are_told_to_become_one_asset_each() {
    let (service, folder) = (Service::start(), Folder::new());
    for (header, told) in [
        ("HB.name,HB.quantity", "HB.quantity: 2 rows stand for more than one, such as 3, and each row would become one asset."),
        ("Name,Qty", "Qty: 2 rows stand for more than one, such as 3,"),
    ] {
        let path = folder.file("list.csv", format!("{header}\nMouse,1\nDock,3\nCable,61\nBag,\n"));
        let (_, notes) = suggest(&service, &path, &[]);
        assert!(notes.contains(told), "{notes}");
    }
    let path = folder.file("list.csv", "Name,Quantity\nMouse,1\n");
    assert!(!suggest(&service, &path, &[]).1.contains("stand"));
}

#[test]
fn exports_of_ralph_and_homebox_are_understood() {
    let (service, folder) = (Service::start(), Folder::new());
    let ralph = folder.file(
        "ralph.csv",
        "id,sn,hostname,barcode,price,invoice_date\n112122,S-1,host1,B-1,\"1,249.00\",2024-03-09\n212312,S-2,host2,B-2,$12.58,\n",
    );
    let (command, _) = suggest(&service, &ralph, &[]);
    assert!(command.contains("--map id=") && command.contains("--match serial_number"), "{command}");
    assert_eq!(counts(&import_as_suggested(&service, &ralph, "")), [2, 0, 0, 0]);
    let homebox = folder.file(
        "homebox.csv",
        "HB.name,HB.asset_id,HB.location,HB.purchase_price,HB.purchase_time,HB.serial_number\nItem 1,000-001,Path / To,12.5,2024-03-09,H-1\nItem 2,000-002,Path,,,\n",
    );
    assert_eq!(counts(&import_as_suggested(&service, &homebox, "--create-unmatched")), [2, 0, 0, 0]);
    let prices: Vec<String> = service.assets().iter().map(|asset| asset["purchase_price"].to_string()).collect();
    assert_eq!(prices, ["1249.0", "12.58", "12.5", "null"]);
}

#[test]
fn an_export_of_another_service_is_imported_by_serial_number() {
    let (service, other, folder) = (Service::start(), Service::start(), Folder::new());
    for number in 1..=2 {
        service.create("/assets", &json!({"name": format!("a{number}"), "serial_number": format!("S {number}")}));
    }
    for format in ["csv", "ndjson"] {
        let path = folder.path(&format!("assets.{format}"));
        assert_eq!(service.run(&["export", "-o", path.to_str().unwrap()]).code, 0);
        let options = ["--match", "serial_number", "--map", "asset_tag="];
        let run = other.import(&path, &options);
        assert!(
            run.stderr
                .contains("Left out, since rows are matched by serial_number: id, status_changed_at, created_at, updated_at"),
            "{}",
            run.stderr
        );
        let expected = if format == "csv" { [2, 0, 0, 0] } else { [0, 0, 2, 0] };
        assert_eq!(run.counts(), expected, "{}{}", run.stdout, run.stderr);
    }
}

#[test]
fn a_dry_run_sums_up_the_changes_and_warns_of_lost_zeros() {
    let (service, folder) = (Service::start(), Folder::new());
    let row = |n: u32, center: &str| format!("a{n},S-{n},{center}\n");
    let header = "name,serial_number,custom_fields.cost_center\n";
    let before: String = (1..=250).map(|n| row(n, if n <= 240 { "0815" } else { "4711" })).collect();
    let path = folder.file("assets.csv", header.to_owned() + &before);
    assert_eq!(service.import(&path, &["--match", "serial_number"]).counts(), [250, 0, 0, 0]);
    let after: String = (1..=250).map(|n| row(n, if n <= 240 { "815" } else { "4712" })).collect();
    let path = folder.file("assets.csv", header.to_owned() + &after);
    let run = service.run(&["import", path.to_str().unwrap(), "--match", "serial_number", "--dry-run"]);
    assert!(run.stdout.contains("custom_fields.cost_center: 250 rows, such as 0815 to 815"), "{}", run.stdout);
    let warning = "Warning: custom_fields.cost_center: in 240 rows only leading zeros differ, such as 0815 and 815.";
    run.tells(0, warning);
    let json = service.import(&path, &["--match", "serial_number", "--dry-run"]).json();
    let expected =
        json!([{"field": "custom_fields.cost_center", "rows": 250, "old": "0815", "new": "815", "only_leading_zeros": 240}]);
    assert_eq!(json["changes"], expected);
    assert_eq!(service.import(&path, &["--match", "serial_number"]).json()["changes"], json!([]));
}

#[test]
fn a_zero_byte_costs_only_its_row() {
    let (service, folder) = (Service::start(), Folder::new());
    let path = folder.file("assets.csv", b"name,notes,custom_fields.x\na,1,2\nb\0,1,2\nc,1,2\0\nd,1,2\n");
    let run = service.import(&path, &[]);
    assert_eq!((run.code, run.counts()), (3, [2, 0, 0, 2]), "{}{}", run.stdout, run.stderr);
    let mended = std::fs::read_to_string(folder.path("assets.csv.refused.csv")).unwrap().replace('\0', "");
    let path = folder.file("mended.csv", mended);
    assert_eq!(service.import(&path, &[]).counts(), [2, 0, 0, 0]);
}

#[test]
fn dates_of_other_forms_are_understood_or_explained() {
    let (service, folder) = (Service::start(), Folder::new());
    let path = folder.file("assets.csv", "name,purchase_date\na,09.03.2024\nb,2024-03-10\nc,44606\n");
    let (command, notes) = suggest(&service, &path, &[]);
    assert!(command.contains("--date-format DD.MM.YYYY"), "{command}");
    let warning = "purchase_date: 1 cell with a spreadsheet's day number, such as 44606, will be refused. Format the column as";
    assert!(notes.contains(warning), "{notes}");
    let summary = service.import(&path, &["--date-format", "DD.MM.YYYY"]).json();
    assert_eq!(counts(&summary), [2, 0, 0, 1]);
    assert_eq!(summary["refused_reasons"][0]["detail"], "\"44606\" is a spreadsheet's day number for 2022-02-14");
    for (name, text) in [
        ("both.csv", "name,purchase_date,status\na,31.02.2024,lost\n"),
        ("both.ndjson", "{\"name\":\"a\",\"purchase_date\":\"31.02.2024\",\"status\":\"lost\"}\n"),
    ] {
        let both = service.import(&folder.file(name, text), &["--date-format", "DD.MM.YYYY"]).json();
        let columns: Value =
            both["refused_rows"][0]["errors"].as_array().unwrap().iter().map(|error| error["column"].clone()).collect();
        assert_eq!((counts(&both), columns), ([0, 0, 0, 1], json!(["purchase_date", "status"])), "{both}");
    }
    let path = folder.file("more.csv", "name,purchase_date\nc,44606\n");
    let skipped = service.import(&path, &["--skip-bad", "purchase_date"]).json();
    assert_eq!((counts(&skipped), &skipped["skipped_cells"]), ([1, 0, 0, 0], &json!(1)), "{skipped}");
    let again = service.run(&["import", path.to_str().unwrap(), "--skip-bad", "purchase_date", "--again"]);
    again.tells(0, "1 bad cell was left out, because of --skip-bad:");
}

#[test]
fn a_repeated_import_leaves_out_the_same_cells_whatever_they_mean_by_then() {
    let (service, folder) = (Service::start(), Folder::new());
    let path = folder.file("a.csv", "name,asset_tag,assigned_to_email\na,T-1,new@example.com\nb,T-2,\n");
    let options = ["--skip-bad", "assigned_to_email", "--skip-bad", "asset_tag"];
    let first = service.import(&path, &options).json();
    assert_eq!((counts(&first), &first["skipped_cells"]), ([2, 0, 0, 0], &json!(1)), "{first}");
    service.create("/users", &json!({"email": "new@example.com", "display_name": "New"}));
    let again = service.import(&path, &options).json();
    assert_eq!((&again["imported_already"], service.total("/assets")), (&json!(2), 2), "{again}");
}

#[test]
fn a_mapping_that_is_appended_counts() {
    let (service, folder) = (Service::start(), Folder::new());
    let text = "Name,Location,First,Last\na,Oslo,Ada,Lovelace\n";
    let path = folder.file("assets.csv", text);
    let pasted = ["--map", "Name=name", "--map", "Location=", "--map", "First=", "--map", "Last=notes"];
    let appended = ["--map", "Location=custom_fields.location", "--map", "Last=", "--map", "First + Last=notes"];
    let run = service.import(&path, &[&pasted[..], &appended].concat());
    assert_eq!(run.counts(), [1, 0, 0, 0], "{}", run.stderr);
    let asset = &service.assets()[0];
    assert_eq!((&asset["custom_fields"]["location"], &asset["notes"]), (&json!("Oslo"), &json!("Ada Lovelace")));
    let lines = folder.file("assets.ndjson", "{\"Name\": \"b\", \"Location\": \"Bern\"}\n");
    let run = service.import(&lines, &["--map", "Name=name", "--map", "Location=", "--map", "Location=custom_fields.location"]);
    assert_eq!(run.counts(), [1, 0, 0, 0], "{}", run.stderr);
    assert_eq!(service.assets()[1]["custom_fields"]["location"], "Bern");
    let twice = ["--map", "Name=name", "--map", "Location=notes", "--map", "Location=custom_fields.location"];
    let run = service.run(&[&["import", path.to_str().unwrap(), "--dry-run"][..], &twice].concat());
    run.tells(2, "--map \"Location\": is given twice, as notes and as custom_fields.location");
}

#[test]
fn a_status_for_all_rows_is_offered_if_all_have_a_holder() {
    let (service, folder) = (Service::start(), Folder::new());
    let path = folder.file("assets.csv", "name,assigned_to_email\na,ada@example.com\nb,ada@example.com\n");
    let (_, notes) = suggest(&service, &path, &[]);
    assert!(
        notes.contains("2 assets would have a user and be in_stock: --set status=in_use sets the status of all rows"),
        "{notes}"
    );
    let (_, notes) = suggest(&service, &path, &["--set", "status=in_use"]);
    assert!(!notes.contains("in_stock"), "{notes}");
}

#[test]
fn wrong_encodings_and_delimiters_are_noticed() {
    let (service, folder) = (Service::start(), Folder::new());
    let utf8 = folder.file("utf8.csv", "name,notes\nMüller,x\n");
    let cp850 = folder.file("cp850.csv", b"name,notes\nM\x81ller,x\n");
    for (path, options, told) in [
        (
            &utf8,
            ["--encoding", "windows-1252"],
            "the file is UTF-8. With --encoding windows-1252, its non-ASCII letters are garbled",
        ),
        (&cp850, ["--encoding", "windows-1252"], "for example cp850 or Mac Roman: save it as UTF-8"),
        (&utf8, ["--delimiter", "semicolon"], "with --delimiter semicolon there is 1 column; with comma there are 2 columns."),
    ] {
        let (_, notes) = suggest(&service, path, &options);
        assert!(notes.contains(told), "{notes}");
        let run = service.import(path, &[&options[..], &["--dry-run"]].concat());
        assert!(run.stderr.contains(told), "{}", run.stderr);
    }
    service.import(&utf8, &["--encoding", "cp850"]).tells(2, "macintosh, x-mac-cyrillic, ibm866");
}

#[test]
fn the_second_column_of_a_heading_is_named_by_its_number() {
    let (service, folder) = (Service::start(), Folder::new());
    let path = folder.file(
        "assets.csv",
        "name,Category,Category,custom_fields.x,custom_fields.x,purchase_date\na,IT,Laptop,1,2,2024-03-09\nb,IT,Phone,1,2,soon\n",
    );
    let refused = service.import(&path, &["--map", "Category=notes"]);
    for told in [
        "\"Category\": must not occur more than once; map the further one as \"Category (2)\" or #3",
        "\"custom_fields.x\": must not occur more than once",
    ] {
        refused.tells(2, told);
    }
    let options = ["--map", "Category=notes", "--map", "Category (2)=custom_fields.category", "--map", "custom_fields.x (2)="];
    let run = service.import(&path, &options);
    assert_eq!(run.counts(), [1, 0, 0, 1], "{}", run.stderr);
    let asset = &service.assets()[0];
    assert_eq!((&asset["notes"], &asset["custom_fields"]), (&json!("IT"), &json!({"category": "Laptop", "x": "1"})));
    let refused = folder.path("assets.csv.refused.csv");
    let mended = std::fs::read_to_string(&refused).unwrap().replace(",soon", ",2024-03-10");
    std::fs::write(&refused, mended).unwrap();
    assert_eq!(service.import(&refused, &options).counts(), [1, 0, 0, 0]);
    assert_eq!(service.assets()[1]["custom_fields"]["category"], "Phone");
    let (command, _) = suggest(&service, &path, &[]);
    assert!(command.contains("--map \"Category (2)=?\"") && command.contains("--map \"custom_fields.x (2)=?\""), "{command}");
}

#[test]
fn an_error_of_most_rows_comes_from_an_option() {
    let (service, folder) = (Service::start(), Folder::new());
    let path = folder.file("assets.csv", "name,Kauf\na,13/01/2024\nb,14/01/2024\nc,15/01/2024\nd,01/02/2024\n");
    let options = ["--map", "Kauf=purchase_date", "--date-format", "MM/DD/YYYY"];
    let summary = service.import(&path, &[&options[..], &["--dry-run"]].concat()).json();
    let way_out = "most rows have this error: check --date-format, and --map Kauf=purchase_date";
    assert_eq!((counts(&summary), &summary["refused_reasons"][0]["way_out"]), ([1, 0, 0, 3], &json!(way_out)));
    let path = folder.file("assets.csv", "name,Kauf\na,01/13/2024\nb,01/14/2024\nc,01/15/2024\nd,31/01/2024\n");
    let summary = service.import(&path, &[&options[..], &["--dry-run"]].concat()).json();
    assert_eq!(summary["refused_reasons"][0]["way_out"], "correct the cell");
}

/// Samples of four exports, each with its oddities: line breaks in cells, epochs, a repeated heading, foreign headings, grouped prices.
const SAMPLES: [(&str, &str); 4] = [
    (
        "chromeos.csv",
        "deviceId,annotatedAssetId,annotatedLocation,annotatedUser,autoUpdateExpiration,lastSync,model,notes,serialNumber,status\n\
         0a1b2c3d-0000-4000-8000-000000000001,CB-0001,Room 101,student1@example.com,2027-06-01,2026-10-05T13:22:43.123Z,Acer 311,\"cart 1\nslot 3\",NXAAA1,ACTIVE\n\
         0a1b2c3d-0000-4000-8000-000000000003,1003,\"Library / 2\",,1696118400000,Never,Lenovo 300e,,P200000A,DISABLED\n",
    ),
    (
        "leihs.csv",
        "Created at;Updated at;Product;Manufacturer;Inventory Code;Serial Number;Building;Room;Owner;Initial Price;Warranty expiration;Borrower First name;Borrower Last name\n\
         2020-01-05 10:00:00 UTC;;Beamer;Epson;AV0001;X1234567;Hauptgebäude (HG);A.1/2;IT-Zentrum;1'637.05;05.03.2028;;\n\
         2020-01-05 10:00:00 UTC;;Beamer;Epson;AV0002;X1234568;Hauptgebäude (HG);n/a;IT-Zentrum;80.00;05.03.2028;Jane;Doe\n",
    ),
    (
        "partdb.csv",
        "name;category;notes;manufacturing_status;manufacturer;price;minamount;manufacturing_status\n\
         Dock A;Docks -> USB;keep;;Maker;2,3;4;\nDock B;Docks;<b>HTML</b>;active;;;1;active\n",
    ),
    (
        "school.csv",
        "stav,Místnost,Inv. číslo,Název,Typ,SN,\"VYRAD\n\",Datum pořízení,Cena\n\
         ,,S-7087,PO Acer Chromebook,,,,17.09.2020,14 790.00\n,,8158,\"Apple iPadOS16/Silve - 10,9\"\"\",,,,20.11.2023,14 734.00\n",
    ),
];

/// Returns what an import has created, without what the service assigns.
fn imported(service: &Service) -> Value {
    let fields = |asset: &Value| {
        let names = [
            "name",
            "notes",
            "serial_number",
            "status",
            "location",
            "model",
            "manufacturer",
            "purchase_date",
            "purchase_price",
            "warranty_until",
            "custom_fields",
            "assigned_to_email",
        ];
        json!(names.map(|name| asset[name].clone()))
    };
    service.assets().iter().map(fields).collect()
}

/// The rows that `assetctl` decodes and sends in parts are read like the file itself, with the same parameters in its request.
#[test]
fn the_command_imports_what_a_request_with_the_whole_file_does() {
    let folder = Folder::new();
    for (name, text) in SAMPLES {
        let (command_line, request) = (Service::start(), Service::start());
        for service in [&command_line, &request] {
            service.create("/users", &json!({"email": "student1@example.com", "display_name": "Student"}));
            service.create("/users", &json!({"email": "jane@example.com", "display_name": "Doe, Jane"}));
        }
        let path = folder.file(name, text);
        let suggested = command_line.run(&["import", path.to_str().unwrap(), "--suggest", "--json"]).ok().json();
        let words = suggested["command"].as_str().unwrap().replace("=?\"", "=\"");
        let decided = " --set name=Chromebook --value status:ACTIVE=in_use --value status:DISABLED=in_service --json";
        // Its categories are no types.
        let untyped = " --map category= --json";
        let extra = if name == "chromeos.csv" {
            decided
        } else if name == "partdb.csv" {
            untyped
        } else {
            " --json"
        };
        let run = command_line.paste(&folder.path(""), &format!("{words}{extra}"));
        assert_eq!(run.counts(), [2, 0, 0, 0], "{name}: {}{}", run.stdout, run.stderr);
        let mut parameters: Vec<Value> = suggested["suggestion"]["parameters"].as_array().unwrap().clone();
        let unplaced = suggested["unknown"].as_array().unwrap().iter().map(|heading| format!("{}=", heading.as_str().unwrap()));
        parameters.extend(unplaced.map(|value| json!({"name": "map", "value": value})));
        if name == "partdb.csv" {
            parameters.push(json!({"name": "map", "value": "category="}));
        }
        if name == "chromeos.csv" {
            parameters.push(json!({"name": "set", "value": "name=Chromebook"}));
            parameters.extend(
                ["status:ACTIVE=in_use", "status:DISABLED=in_service"].map(|value| json!({"name": "value", "value": value})),
            );
        }
        let reply = request.send("POST", "/assets/import", &json!({"parameters": parameters, "text": text}));
        assert_eq!(reply["meta"]["created"], 2, "{name}: {reply}");
        assert_eq!(imported(&request), imported(&command_line), "{name}");
    }
}
