//! Writes snapshots of list indexes, on a schedule (docs/adr/0013).

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    shared::app::write_snapshots().await
}
