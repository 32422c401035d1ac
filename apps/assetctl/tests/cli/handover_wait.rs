//! `assetctl handover --wait` with the real service.

use crate::handover::{asset, user};
use crate::support::service::Service;
use crate::support::{Run, run, stderr_until};
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

struct Waiting {
    child: Child,
    stdout: BufReader<ChildStdout>,
    link: String,
}

fn wait(service: &Service, tag: &str, options: &[&str]) -> Waiting {
    let mut command = service.command(&[&["handover", tag, "--to", "mary@example.org", "--wait"], options].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdout, mut link) = (BufReader::new(child.stdout.take().unwrap()), String::new());
    stdout.read_line(&mut link).unwrap();
    Waiting { child, stdout, link: link.trim().to_owned() }
}

impl Waiting {
    /// Without the link.
    fn end(mut self) -> Run {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        Run { stdout: rest, ..Run::of(self.child.wait_with_output().unwrap()) }
    }
}

#[test]
fn a_wait_ends_with_the_signature_even_if_the_service_was_away() {
    let service = Service::start();
    let mary = user(&service, "Mary", true);
    let (id, tag) = asset(&service, "preparing");
    let mut killed = wait(&service, &tag, &[]);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    let mut waiting = wait(&service, &tag, &[]);
    service.stop();
    stderr_until(&mut waiting.child, "waiting for it. The link stays valid.");
    service.start_again();
    service.sign(&killed.link, json!({"handover": ["Device"]}));
    let done = waiting.end();
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains("The service answers again."), "{}", done.stderr);
    assert!(done.stdout.contains("/receipt?format=html"), "{}", done.stdout);
    let asset = &service.get(&format!("/assets/{id}"))["data"];
    assert_eq!((&asset["status"], &asset["assigned_to"]), (&json!("in_use"), &json!(mary)));
    assert_eq!(service.total("/processes/instances"), 1);
}

#[test]
fn a_wait_ends_with_the_time_or_the_link() {
    let service = Service::start();
    user(&service, "Mary", true);
    let (_, tag) = asset(&service, "preparing");
    let interrupted = wait(&service, &tag, &[]);
    assert!(Command::new("kill").args(["-INT", &interrupted.child.id().to_string()]).status().unwrap().success());
    let interrupted = interrupted.end();
    assert_eq!(interrupted.code, 130, "{}", interrupted.stderr);
    assert!(interrupted.stderr.ends_with("Interrupted. To go on, repeat the command; a link stays valid.\n"));
    let late = wait(&service, &tag, &["--timeout", "1"]);
    let revoked = wait(&service, &tag, &[]);
    let instance = service.get("/processes/instances")["data"][0]["id"].as_str().unwrap().to_owned();
    let links = service.get(&format!("/processes/instances/{instance}/links"));
    let newest = links["data"][0]["id"].as_str().unwrap();
    service.send("DELETE", &format!("/processes/instances/{instance}/links/{newest}"), &json!({}));
    let (late, revoked) = (late.end(), revoked.end());
    assert!(late.code == 1 && late.stderr.contains("not signed within 1 s; the link stays valid"), "{}", late.stderr);
    assert!(revoked.code == 1 && revoked.stderr.contains("not signed: the link is revoked"), "{}", revoked.stderr);
}

#[test]
fn a_service_that_is_not_there_is_said() {
    let away = run("http://127.0.0.1:1/v1", &["handover", "AST-1", "--to", "mary@example.org"]);
    assert!(away.code == 1 && away.stderr.contains("can't reach http://127.0.0.1:1/v1"), "{}", away.stderr);
}
