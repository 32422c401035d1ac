//! Labels as a browser prints them: that sheets have the right number of pages, and that every code can be read in its place.
//! `.ci/pages/labels` installs the programs that this needs: chromium, pdfinfo and pdftoppm.

use crate::assets::labels::Image;
use crate::support::{Api, Client};
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn};
use serde_json::json;
use std::path::Path;
use tokio::process::Command;

const DOTS_PER_MM: f64 = 300.0 / 25.4;

/// Serves the API to a browser, which can't send a key. Returns its address.
async fn serve(client: &Client) -> String {
    let key = HeaderValue::try_from(format!("Bearer {}", client.key)).unwrap();
    let with_key = move |mut request: Request, next: Next| {
        request.headers_mut().insert(AUTHORIZATION, key.clone());
        next.run(request)
    };
    let router = client.router.clone().layer(from_fn(with_key));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/v1")
}

async fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().await;
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; .ci/pages/labels installs it"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

async fn chromium(folder: &Path, arguments: &[&str]) {
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let quiet = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        &profile,
    ];
    run("chromium", &[&quiet, arguments].concat()).await;
}

/// Reads a gray image in Netpbm's binary format.
fn pgm(file: &Path) -> Image {
    let bytes = std::fs::read(file).unwrap();
    let header: Vec<&[u8]> = bytes.splitn(4, u8::is_ascii_whitespace).collect();
    let number = |text: &[u8]| std::str::from_utf8(text).unwrap().parse::<usize>().unwrap();
    assert_eq!(header[0], b"P5");
    let (width, height) = (number(header[1]), number(header[2]));
    Image { width, height, pixels: bytes[bytes.len() - width * height..].to_vec() }
}

/// `element` begins with the element.
fn attribute(element: &str, name: &str) -> f64 {
    element.split_once(&format!(" {name}=\"")).unwrap().1.split_once('"').unwrap().0.parse().unwrap()
}

fn cut(image: &Image, label: &str) -> Image {
    let dots = |name| (attribute(label, name) * DOTS_PER_MM).round() as usize;
    let (left, top) = (dots("x"), dots("y"));
    let (width, height) = (dots("width").min(image.width - left), dots("height").min(image.height - top));
    let rows = (top..top + height).flat_map(|y| image.pixels[y * image.width + left..][..width].to_vec());
    Image { width, height, pixels: rows.collect() }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs chromium and poppler: .ci/pages/labels"]
async fn every_code_of_every_sheet_can_be_read_in_its_place() {
    let (_api, client) = Api::with_tenant().await;
    let names = ["Dell XPS 15", "מחשב נייד של דנה", "حاسوب محمول", "笔记本电脑", "^XZ <script>", &"long name ".repeat(25)];
    let mut ids = Vec::new();
    for name in names.iter().cycle().take(100) {
        ids.push(client.asset(json!({"name": name})).await);
    }
    let (base, folder) = (serve(&client).await, tempfile::tempdir().unwrap());
    let file = |name: &str| folder.path().join(name);
    for (template, layout, labels, size) in [
        (json!(null), "a4-21", 21, "594.96 x 841.92 pts (A4)"),
        (json!("https://assets.example.com/{asset_tag}"), "a4-24", 24, "594.96 x 841.92 pts (A4)"),
        (json!(null), "a4-65", 65, "594.96 x 841.92 pts (A4)"),
        (json!("https://assets.example.com/{asset_tag}"), "letter-30", 30, "612 x 792 pts (letter)"),
        (json!("https://assets.example.com/{asset_tag}"), "letter-80", 80, "612 x 792 pts (letter)"),
    ] {
        client.patch("/settings", json!({"label_url_template": template})).await.data();
        let path = format!("/assets/labels?ids={}&layout={layout}&skip=3", ids.join(","));
        let pdf = file(&format!("{layout}.pdf"));
        let print = format!("--print-to-pdf={}", pdf.display());
        chromium(folder.path(), &[&print, "--no-pdf-header-footer", &format!("{base}{path}")]).await;
        let pages = 103usize.div_ceil(labels);
        let info = run("pdfinfo", &[pdf.to_str().unwrap()]).await;
        let line = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        assert_eq!((line("Pages:"), line("Page size:")), (pages.to_string(), size.to_owned()), "{layout}");
        let prefix = file(layout);
        run("pdftoppm", &["-r", "300", "-gray", pdf.to_str().unwrap(), prefix.to_str().unwrap()]).await;
        let page = client.get(&path).await;
        std::fs::write(file(&format!("{layout}.html")), &page.bytes).unwrap();
        let sheets = page.text().split("<svg class=\"sheet\"").skip(1);
        let mut read = 0;
        for (sheet, number) in sheets.zip(1..) {
            let digits = pages.to_string().len();
            let image = pgm(&file(&format!("{layout}-{number:0digits$}.pgm")));
            for label in sheet.split("<svg xmlns").skip(1) {
                read += 1;
                let tag = format!("AST-{read:06}");
                let expected = template.as_str().map_or(tag.clone(), |template| template.replace("{asset_tag}", &tag));
                assert_eq!(cut(&image, label).codes(), [expected], "{layout}, page {number}");
            }
        }
        assert_eq!(read, 100);
    }
    keep(folder.path());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs chromium and poppler: .ci/pages/labels"]
async fn the_code_of_a_label_of_20_millimetres_can_be_read() {
    let (_api, client) = Api::with_tenant().await;
    client.patch("/settings", json!({"label_url_template": "https://assets.example.com/{asset_tag}"})).await.data();
    let id = client.asset(json!({"name": "Dell XPS 15 of Ada"})).await;
    let (base, folder) = (serve(&client).await, tempfile::tempdir().unwrap());
    let shot = folder.path().join("label-20x20.png");
    let shot_argument = format!("--screenshot={}", shot.display());
    let url = format!("{base}/assets/{id}/label?size=20x20");
    // 96 pixels of a page are an inch, so that these are 300 dots.
    chromium(folder.path(), &["--force-device-scale-factor=3.125", "--window-size=600,400", &shot_argument, &url]).await;
    let image = Image::of_png(&std::fs::read(&shot).unwrap());
    assert_eq!(image.codes(), ["https://assets.example.com/AST-000001"]);
    keep(folder.path());
}

/// Copies the files to the folder that `LABELS_FOLDER` names, for people.
fn keep(folder: &Path) {
    let Some(kept) = std::env::var_os("LABELS_FOLDER") else { return };
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        std::fs::copy(&file, Path::new(&kept).join(file.file_name().unwrap())).unwrap();
    }
}
