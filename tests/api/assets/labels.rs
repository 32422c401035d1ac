//! Labels: codes are readable in every format and when printed by a browser, and texts stay within their areas.

use crate::support::prelude::*;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn};
use tokio::process::Command;

pub struct Image {
    pub width: usize,
    pub height: usize,
    pub pixels: Vec<u8>,
}

impl Image {
    /// Reads a PNG's red channel, which is enough for black and white.
    pub fn of_png(bytes: &[u8]) -> Self {
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        let pixels = pixels.into_iter().step_by(info.color_type.samples()).collect();
        Self { width: info.width as usize, height: info.height as usize, pixels }
    }

    pub fn codes(&self) -> Vec<String> {
        let pixel = |x: usize, y: usize| self.pixels[y * self.width + x];
        let mut prepared = rqrr::PreparedImage::prepare_from_greyscale(self.width, self.height, pixel);
        prepared.detect_grids().into_iter().map(|grid| grid.decode().unwrap().1).collect()
    }
}

fn png(reply: &Reply) -> Image {
    assert_eq!((reply.status.as_u16(), reply.header("content-type")), (200, "image/png"), "{:?}", reply.bytes);
    let reader = png::Decoder::new(std::io::Cursor::new(&reply.bytes)).read_info().unwrap();
    let dots = reader.info().pixel_dims.unwrap();
    assert_eq!((dots.xppu, dots.yppu, dots.unit), (11811, 11811, png::Unit::Meter), "300 dots per inch");
    Image::of_png(&reply.bytes)
}

/// Draws the path of an SVG's code, with ten pixels per module.
fn svg_code(svg: &str) -> Image {
    let path = svg.split_once(" d=\"").unwrap().1.split_once('"').unwrap().0;
    let runs: Vec<Vec<usize>> = path
        .split('M')
        .skip(1)
        .map(|run| run.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect())
        .collect();
    let modules = runs.iter().map(|run| run[1]).max().unwrap() + 1;
    let width = (modules + 8) * 10;
    let mut image = Image { width, height: width, pixels: vec![255; width * width] };
    for run in runs {
        let [x, y, length, _, _] = run[..] else { panic!("{run:?}") };
        for row in (y + 4) * 10..(y + 5) * 10 {
            image.pixels[row * width + (x + 4) * 10..][..length * 10].fill(0);
        }
    }
    image
}

/// Draws the bitmap in a label printer's commands.
fn zpl_code(zpl: &str) -> Image {
    let field = zpl.split_once("^GFA,").unwrap().1.split_once("^FS").unwrap().0;
    let [total, _, row, hex] = field.split(',').collect::<Vec<_>>()[..] else { panic!("{field}") };
    let (total, row): (usize, usize) = (total.parse().unwrap(), row.parse().unwrap());
    assert_eq!(hex.len(), total * 2);
    let dark = |x: usize, y: usize| {
        let byte = u8::from_str_radix(&hex[(y * row + x / 8) * 2..][..2], 16).unwrap();
        byte & (0x80 >> (x % 8)) != 0
    };
    let (width, margin) = (row * 8 + 80, 40);
    let height = total / row + 80;
    let inside = |x: usize, y: usize| (margin..margin + row * 8).contains(&x) && (margin..margin + total / row).contains(&y);
    let pixel = |place: usize| {
        let (x, y) = (place % width, place / width);
        if inside(x, y) && dark(x - margin, y - margin) { 0 } else { 255 }
    };
    Image { width, height, pixels: (0..width * height).map(pixel).collect() }
}

async fn tag(client: &Client, id: &str) -> String {
    client.get(&format!("/assets/{id}")).await.data()["asset_tag"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn the_code_of_a_label_holds_the_tag_in_every_format() {
    let client = over_http().await;
    let id = client.asset(json!({"name": "Dell XPS 15"})).await;
    let path = format!("/assets/{id}/label");
    let svg = client.get(&path).await;
    assert_eq!((svg.status.as_u16(), svg.header("content-type")), (200, "image/svg+xml"));
    assert!(svg.text().contains(" width=\"50mm\" height=\"20mm\" viewBox=\"0 0 50 20\""), "{}", svg.text());
    assert!(svg.text().contains(">AST-000001</text>") && svg.text().contains(">Dell XPS 15</text>"), "{}", svg.text());
    assert_eq!(svg_code(svg.text()).codes(), ["AST-000001"]);
    let policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    assert_eq!(svg.header("content-security-policy"), policy);
    for (size, width, height) in
        [("", 591, 236), ("&size=20x20", 236, 236), ("&size=12x12", 142, 142), ("&size=101.6x152.4", 1200, 1800)]
    {
        let reply = client.get(&format!("{path}?format=png{size}")).await;
        let image = png(&reply);
        assert_eq!((image.width, image.height), (width, height));
        assert_eq!(image.codes(), ["AST-000001"], "{size}");
        assert_eq!(reply.header("content-disposition"), "inline; filename=\"AST-000001.png\"");
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
    }
    for (dpi, width) in [("", "^PW400\n^LL160\n"), ("&dpi=203", "^PW400\n^LL160\n"), ("&dpi=300", "^PW591\n^LL236\n")] {
        let zpl = client.get(&format!("{path}?format=zpl{dpi}")).await;
        assert_eq!((zpl.status.as_u16(), zpl.header("content-type")), (200, "text/plain; charset=utf-8"));
        assert!(zpl.text().starts_with("^XA\n^CI28\n") && zpl.text().ends_with("^XZ\n"), "{}", zpl.text());
        assert!(zpl.text().contains(width), "{}", zpl.text());
        assert_eq!(zpl_code(zpl.text()).codes(), ["AST-000001"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_code_can_hold_an_address_with_the_tag_or_the_id() {
    let client = over_http().await;
    let body = json!({"label_url_template": "https://example.com/a/{asset_tag}?id={id}", "asset_tag_template": "Büro 1/#NNN"});
    client.patch("/settings", body).await.data();
    let id = client.asset(json!({"name": "x"})).await;
    let path = format!("/assets/{id}/label");
    let address = format!("https://example.com/a/B%C3%BCro%201%2F%23001?id={id}");
    let svg = client.get(&path).await;
    assert_eq!(svg_code(svg.text()).codes(), [address.as_str()]);
    assert!(svg.text().contains("Büro 1/#001"));
    assert_eq!(svg.header("content-disposition"), "inline; filename=\"B_ro_1__001.svg\"");
    assert_eq!(png(&client.get(&format!("{path}?format=png&size=25x25")).await).codes(), [address]);
    // Without a template, the code contains the tag in UTF-8.
    client.patch("/settings", json!({"label_url_template": null})).await.data();
    assert_eq!(png(&client.get(&format!("{path}?format=png")).await).codes(), ["Büro 1/#001"]);
    // A label of 20 mm can hold the longest URL. A label whose code is too small to scan is refused.
    let long = format!("https://example.com/{}{{asset_tag}}", "x".repeat(224));
    client.patch("/settings", json!({"label_url_template": long})).await.data();
    assert_eq!(client.get(&format!("{path}?format=png&size=19x19")).await.field_errors(), ["size"]);
    let reply = client.get(&format!("{path}?format=png&size=25x25")).await;
    assert_eq!(png(&reply).codes(), [long.replace("{asset_tag}", "B%C3%BCro%201%2F%23001")]);
    assert_eq!(client.get(&format!("/assets/labels?ids={id}&layout=letter-80")).await.field_errors(), ["layout"]);
    // A full page with the largest codes fits in a response.
    let emoji = format!("NNN{}", "🙂".repeat(27));
    let long = format!("https://example.com/{}{{asset_tag}}{{id}}", "x".repeat(220));
    client.patch("/settings", json!({"asset_tag_template": emoji, "label_url_template": long})).await.data();
    let mut ids = Vec::new();
    for _ in 0..100 {
        ids.push(client.asset(json!({"name": "x".repeat(255)})).await);
    }
    let page = client.get(&format!("/assets/labels?ids={}&layout=a4-21", ids.join(","))).await;
    assert!(page.status.is_success() && page.bytes.len() < 5_000_000, "{} {}", page.status, page.bytes.len());
}

#[tokio::test(start_paused = true)]
async fn labels_show_hostile_and_long_names_as_text_within_their_area() {
    let client = over_http().await;
    let names = [
        "<script>alert('x')</script>&\"",
        "^XZ^XA~JA _5E",
        "מחשב נייד של דנה",
        "حاسوب محمول",
        "笔记本电脑",
        "👩‍💻 Ada’s laptop – 14″",
        "]]><svg onload=\"x\">",
        &"long name ".repeat(25),
        &"x".repeat(255),
    ];
    let mut ids = Vec::new();
    for name in names {
        let id = client.asset(json!({"name": name})).await;
        let path = format!("/assets/{id}/label");
        let tag = tag(&client, &id).await;
        for size in sample(["20x20", "50x20", "12x80", "100x150"], 1) {
            let svg = client.get(&format!("{path}?size={size}")).await;
            let text = svg.text();
            assert_eq!(text.matches("<svg").count() + text.matches("<script").count(), 1, "{text}");
            assert!(!text.contains("onload=\"") && !text.contains("style") && !text.contains("href"), "{text}");
            assert_eq!(text.matches('<').count(), text.matches('>').count(), "{text}");
            assert_eq!(svg_code(text).codes(), [tag.as_str()]);
            let zpl = client.get(&format!("{path}?format=zpl&size={size}")).await;
            let text = zpl.text();
            assert_eq!(
                (text.matches("^XA").count(), text.matches("^XZ").count(), text.matches('~').count()),
                (1, 1, 0),
                "{text}"
            );
            assert_eq!(text.matches("^FD").count(), text.matches("^FH_").count(), "{text}");
            assert_eq!(
                png(&client.get(&format!("{path}?format=png&size={size}")).await).codes(),
                [tag.as_str()],
                "{name} {size}"
            );
        }
        ids.push(id);
    }
    let page = client.get(&format!("/assets/labels?ids={}", ids.join(","))).await;
    let text = page.text();
    assert!(!text.contains("<script") && !text.contains("<svg onload") && !text.contains(" style="), "{text}");
    let rtl = text.matches("direction=\"rtl\"").count();
    assert!(rtl >= 2 && text.contains("unicode-bidi=\"isolate\""), "{rtl}");
}

#[tokio::test(start_paused = true)]
async fn a_page_has_each_label_in_its_place_and_a_note_in_the_readers_language() {
    let client = over_http().await;
    let ids = client.assets(100).await.join(",");
    let layouts = [
        ("a4-21", 0, 5, "x=\"7.21\" y=\"15.15\""),
        ("a4-24", 23, 6, "x=\"140\" y=\"259.5\""),
        ("a4-65", 0, 2, "x=\"4.67\" y=\"10.7\""),
        ("letter-30", 1, 4, "x=\"74.6125\" y=\"12.7\""),
        ("letter-80", 61, 3, "x=\"59.5312\" y=\"203.2\""),
    ];
    for (layout, skip, sheets, first) in sample(layouts, 1) {
        let page = client.get(&format!("/assets/labels?ids={ids}&layout={layout}&skip={skip}")).await;
        assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"), "{}", page.text());
        let text = page.text();
        assert_eq!(text.matches("<svg class=\"sheet\"").count(), sheets, "{layout}");
        let labels: Vec<&str> = text.split("<svg xmlns").skip(1).collect();
        assert_eq!(labels.len(), 100);
        assert!(labels[0].contains(first), "{layout}: {}", labels[0]);
        for (label, number) in sample(labels.iter().zip(1..), 8) {
            assert_eq!(svg_code(label).codes(), [format!("AST-{number:06}")]);
        }
        let policy = page.header("content-security-policy");
        let style = text.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
        let digest = <sha2::Sha256 as sha2::Digest>::digest(style);
        assert!(policy.contains(&base64_simd::STANDARD.encode_to_string(digest)) && policy.starts_with("default-src 'none'"));
        assert!(style.contains(if layout.starts_with("a4") {
            "@page{size:210mm 297mm;margin:0}"
        } else {
            "@page{size:8.5in 11in;margin:0}"
        }));
    }

    let id = client.asset(json!({"name": "Laptop"})).await;
    let path = format!("/assets/labels?ids={id}");
    let page = client.send_with("GET", &path, None, "", &[("accept-language", "es-MX")]).await;
    assert!(page.text().contains("<html lang=\"es\">") && page.text().contains("<title>Etiquetas</title>"), "{}", page.text());
    let page = client.get(&path).await;
    assert!(page.text().contains("<html lang=\"en\">") && page.text().contains("without margins"), "{}", page.text());
}

#[tokio::test(start_paused = true)]
async fn bad_requests_for_labels_are_refused() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "x"})).await;
    let label = format!("/assets/{id}/label");
    for (query, parameter) in [
        ("format=pdf", "format"),
        ("size=11x20", "size"),
        ("size=50x161", "size"),
        ("dpi=203", "dpi"),
        ("format=zpl&dpi=600", "dpi"),
        ("sizes=1", "sizes"),
    ] {
        assert_eq!(client.get(&format!("{label}?{query}")).await.field_errors(), [parameter]);
    }
    client.get(&format!("/assets/{UNKNOWN_ID}/label")).await.problem(404, "NOT_FOUND");
    client.get("/assets/x/label").await.problem(404, "NOT_FOUND");
    assert_eq!(client.get("/assets/labels").await.field_errors(), ["ids"]);
    for query in ["", "x", &format!("{id},{id}"), &vec![UNKNOWN_ID; 101].join(",")] {
        assert_eq!(client.get(&format!("/assets/labels?ids={query}")).await.field_errors(), ["ids"], "{query}");
    }
    for (query, parameter) in
        [("layout=a3", "layout"), ("skip=24", "skip"), ("skip=-1", "skip"), ("layout=a4-21&skip=21", "skip")]
    {
        assert_eq!(client.get(&format!("/assets/labels?ids={id}&{query}")).await.field_errors(), [parameter]);
    }
    // Assets of other tenants are unknown. The error names each unknown asset.
    let other = api.tenant().await;
    let foreign = other.asset(json!({"name": "x"})).await;
    let problem = client.get(&format!("/assets/labels?ids={UNKNOWN_ID},{id},{foreign}")).await.problem(422, "VALIDATION_ERROR");
    let errors = problem["errors"].as_array().unwrap();
    let details: Vec<&str> = errors.iter().map(|error| error["detail"].as_str().unwrap()).collect();
    assert_eq!(details, [format!("number 1: there is no asset {UNKNOWN_ID}"), format!("number 3: there is no asset {foreign}")]);
}

const DOTS_PER_MM: f64 = 300.0 / 25.4;

/// Serves the API over HTTP and adds the client's key to each request, because the browser can't. Returns the URL.
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

/// Reads an attribute of the element at the start of the text.
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
    // 96 CSS pixels are an inch, so the scale gives 300 dots per inch.
    chromium(folder.path(), &["--force-device-scale-factor=3.125", "--window-size=600,400", &shot_argument, &url]).await;
    let image = Image::of_png(&std::fs::read(&shot).unwrap());
    assert_eq!(image.codes(), ["https://assets.example.com/AST-000001"]);
    keep(folder.path());
}

/// Copies the files to the folder in `LABELS_FOLDER`, for inspection.
fn keep(folder: &Path) {
    let Some(kept) = std::env::var_os("LABELS_FOLDER") else { return };
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        std::fs::copy(&file, Path::new(&kept).join(file.file_name().unwrap())).unwrap();
    }
}
