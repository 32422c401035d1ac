//! The output on a terminal.

use crate::Operator;
use std::process::Command;
use terminal::pty::HOSTILE;

#[tokio::test]
async fn people_see_tables_and_programs_json() {
    let operator = Operator::start().await;
    let tenant = operator.create_tenant();
    let (shown, _) = operator.show(&["tenant", "list"], "");
    let [header, row] = shown.lines().collect::<Vec<_>>().try_into().unwrap();
    assert!(header.starts_with("ID  ") && header.contains("NAME  LIMIT  CREATED (UTC)"), "{shown}");
    assert!(row.starts_with(&format!("{tenant}  Acme  -      20")) && row.len() < 80, "{shown}");
    let (shown, _) = operator.show(&["tenant", "list", "--json"], "");
    assert_eq!(serde_json::from_str::<serde_json::Value>(shown.trim()).unwrap()["name"], "Acme");
    let (shown, is_success) = operator.show(&["verify", "--tenant", "Acme"], "");
    assert!(is_success && shown.contains("valid      yes\n"), "{shown}");
}

#[tokio::test]
async fn errors_are_coloured_and_questions_can_be_answered() {
    let operator = Operator::start().await;
    operator.create_tenant();
    let (shown, is_success) = operator.show(&["verify", "--tenant", "Acne"], "");
    assert!(!is_success && shown.contains("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m tenant \"Acne\" not found"), "{shown:?}");
    let (shown, is_success) = operator.show(&["tenant", "delete", "acme", "--settle", "0"], "Acme\n");
    assert!(is_success && shown.contains("Type the tenant's name to delete it: ") && shown.contains("deleted  "), "{shown}");
}

#[test]
fn wrong_arguments_are_told_what_is_right() {
    let create = ["key", "create", "--tenant", "Acme", "--name", "ci", "--scopes"];
    for (arguments, hint) in [
        (&[&create[..], &["asset:read"]].concat()[..], "did you mean assets:read?"),
        (&["key", "revoke", "--tenant", "Acme", "--key", "ci"], "must be an ID, such as 01890a5d-"),
        (&["events", "--tenant", "Acme", "--since", "yesterday"], "such as 2026-11-21T08:30:00.000Z"),
        (&["tenants", "list"], "a similar subcommand exists: 'tenant'"),
        (&["key", "list", "--tenat", "Acme"], "a similar argument exists: '--tenant'"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_admin")).args(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(hint), "{error}");
    }
}

#[tokio::test]
async fn control_characters_are_never_printed() {
    let operator = Operator::start().await;
    operator.create_tenant();
    let unknown = format!("--{HOSTILE}");
    for arguments in [
        &[HOSTILE][..],
        &["tenant", "list", &unknown],
        &["key", "create", "--tenant", "Acme", "--name", HOSTILE, "--scopes", "assets:read"],
        &["key", "create", "--tenant", "Acme", "--name", "ci", "--scopes", HOSTILE],
        &["key", "revoke", "--tenant", "Acme", "--key", HOSTILE],
        &["verify", "--tenant", HOSTILE],
        &["verify-receipt", HOSTILE, "--keys", HOSTILE],
        &["tenant", "list", "--table", HOSTILE],
        &["tenant", "delete", HOSTILE],
    ] {
        let output = operator.run(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains("owned") && error == terminal::clean_lines(&error), "{error:?}");
        let (shown, _) = operator.show(arguments, "");
        for obeyed in ["\u{1b}]", "\u{1b}[2J", "\u{1b}[8m", "\u{7}", "\u{9b}", "\u{7f}", "\u{202e}", "\u{200f}", "\u{61c}"] {
            assert!(!shown.contains(obeyed), "{arguments:?} shows {obeyed:?}: {shown:?}");
        }
    }
    let (shown, _) = operator.show(&["tenants"], "");
    assert!(shown.contains("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m unrecognized subcommand"), "{shown:?}");
}
