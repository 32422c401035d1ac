//! Lists: pages, filters, search and order.

use crate::support::prelude::*;
use proptest::prelude::*;
use shared::fields::ASSET_FILTERS;

async fn names(client: &Client, query: &str) -> Vec<String> {
    let reply = client.get(&format!("/assets{query}")).await;
    reply.data().as_array().unwrap().iter().map(|asset| asset["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_meta_of_every_page_is_right() {
    let client = over_http().await;
    assert_eq!(
        client.get("/assets").await.json(),
        json!({"data": [], "meta": {"total": 0, "page": 1, "limit": 20, "total_pages": 0}})
    );
    for n in 0..5 {
        client.asset(json!({"name": format!("a{n}")})).await;
    }
    for (query, data, meta) in [
        ("", vec!["a4", "a3", "a2", "a1", "a0"], json!({"total": 5, "page": 1, "limit": 20, "total_pages": 1})),
        ("?limit=2", vec!["a4", "a3"], json!({"total": 5, "page": 1, "limit": 2, "total_pages": 3})),
        ("?limit=2&page=3", vec!["a0"], json!({"total": 5, "page": 3, "limit": 2, "total_pages": 3})),
        ("?limit=2&page=4", vec![], json!({"total": 5, "page": 4, "limit": 2, "total_pages": 3})),
        ("?page=1000000000&limit=100", vec![], json!({"total": 5, "page": 1_000_000_000, "limit": 100, "total_pages": 1})),
        ("?q=&limit=1", vec!["a4"], json!({"total": 5, "page": 1, "limit": 1, "total_pages": 5})),
    ] {
        assert_eq!(names(&client, query).await, data, "{query}");
        assert_eq!(client.get(&format!("/assets{query}")).await.json()["meta"], meta, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_parameters_are_refused_by_name() {
    let client = over_http().await;
    let six: Vec<String> = (0..6).map(|n| format!("custom_fields.f{n}=x")).collect();
    for (query, errors) in [
        (format!("?{}", six.join("&")).as_str(), vec!["custom_fields.f5"]),
        (&format!("?q={}", "a".repeat(256)), vec!["q"]),
        ("?custom_fields.=x", vec!["custom_fields."]),
        ("?purchase_price_min=1e3", vec!["purchase_price_min"]),
        ("?asset_type_code=x", vec!["asset_type_code"]),
        ("?created_from=2026", vec!["created_from"]),
        ("?locaton=x", vec!["locaton"]),
        ("?location=a//b", vec!["location"]),
        ("?location=a%0Ab", vec!["location"]),
        ("?page=0", vec!["page"]),
        ("?page=-1&limit=0", vec!["limit", "page"]),
        ("?limit=101", vec!["limit"]),
        ("?page=1.0&limit=%2B5", vec!["limit", "page"]),
        ("?page=99999999999999999999", vec!["page"]),
        ("?page=1&page=2", vec!["page"]),
        ("?status=lost&kind=x&sort=price", vec!["kind", "sort", "status"]),
        ("?asset_type_id=1&model_id=&assigned_to=null", vec!["asset_type_id", "assigned_to", "model_id"]),
        ("?warranty_before=soon&foo", vec!["foo", "warranty_before"]),
        ("?PageRequest=1", vec!["PageRequest"]),
    ] {
        assert_eq!(client.get(&format!("/assets{query}")).await.field_errors(), errors, "{query}");
    }
    let hint = client.get("/assets?custom_field.x=1").await.json()["errors"][0]["detail"].as_str().unwrap().to_owned();
    assert!(hint.contains("custom_fields.<name>"), "{hint}");
}

#[derive(Debug, Clone)]
struct Plan {
    name: String,
    serial: Option<String>,
    status: &'static str,
    kind: Option<usize>,
    warranty: Option<u32>,
}

const STATUSES: [&str; 3] = ["in_stock", "in_use", "scrapped"];

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let text = "[aAbBäÄß ]{0,5}";
    let plan = (text, proptest::option::of(text), 0..3usize, proptest::option::of(0..2usize), proptest::option::of(1..28u32));
    let plan = plan.prop_map(|(name, serial, status, kind, warranty)| Plan {
        name: format!("x{name}"),
        serial,
        status: STATUSES[status],
        kind,
        warranty,
    });
    proptest::collection::vec(plan, 0..12)
}

/// Search text; indexes of status and kind; end of the warranty; index of the sort order; page size.
type Query = (Option<String>, Option<usize>, Option<usize>, Option<u32>, usize, u32);

fn queries() -> impl Strategy<Value = Query> {
    let q = proptest::option::of("[abÄs]{1,2}( [ab])?");
    (q, proptest::option::of(0..3usize), proptest::option::of(0..2usize), proptest::option::of(1..28u32), 0..6usize, 1..4u32)
}

const SORTS: [&str; 6] = ["", "created_at", "-name", "name", "status", "-asset_tag"];

/// Returns the IDs of the matching assets, by a plain filter.
fn filtered(assets: &[Value], query: &Query) -> Vec<String> {
    let (q, status, kind, before, sort, _) = query;
    let fold = |text: &str| text.to_uppercase().to_lowercase();
    let text = |asset: &Value, field: &str| asset[field].as_str().unwrap_or_default().to_owned();
    let mut found: Vec<&Value> = assets
        .iter()
        .filter(|asset| status.is_none_or(|s| asset["status"] == STATUSES[s]))
        .filter(|asset| kind.is_none_or(|k| asset["asset_kind"] == ["physical", "logical"][k]))
        .filter(|asset| {
            before.is_none_or(|day| {
                asset["warranty_until"].as_str().is_some_and(|until| until < format!("2028-01-{day:02}").as_str())
            })
        })
        .filter(|asset| {
            let hay = ["name", "asset_tag", "serial_number"].map(|field| fold(&text(asset, field)));
            q.iter().flat_map(|q| q.split_whitespace()).all(|word| hay.iter().any(|h| h.contains(&fold(word))))
        })
        .collect();
    found.sort_by_key(|asset| text(asset, "id"));
    let sort = SORTS[*sort];
    let (field, down) = match sort.strip_prefix('-') {
        Some(field) => (field, true),
        None if sort.is_empty() => ("created_at", true),
        None => (sort, false),
    };
    found.sort_by(|a, b| {
        let order =
            if field == "name" { fold(&text(a, field)).cmp(&fold(&text(b, field))) } else { text(a, field).cmp(&text(b, field)) };
        if down { order.reverse() } else { order }
    });
    found.into_iter().map(|asset| text(asset, "id")).collect()
}

/// Checks lists from the list index and lists from the table.
#[test]
fn every_list_equals_a_plain_filter() {
    let runtime = runtime();
    let api = runtime.block_on(Api::start());
    let without_index = api.replica(0, 0);
    property::check(&runtime, 24, &(plans(), proptest::collection::vec(queries(), 6)), async |(plans, queries)| {
        let client = api.tenant().await;
        let types = [client.asset_type("Hard", "HRD", "physical").await, client.asset_type("Soft", "SFT", "logical").await];
        let mut assets = Vec::new();
        for plan in &plans {
            let body = json!({
                "name": plan.name, "serial_number": plan.serial, "status": plan.status, "asset_type_id": plan.kind.map(|k| &types[k]),
                "warranty_until": plan.warranty.map(|day| format!("2028-01-{day:02}")),
            });
            assets.push(client.post("/assets", body).await.data());
        }
        for query in &queries {
            let (q, status, kind, before, sort, limit) = query;
            let mut parts = vec![format!("limit={limit}")];
            parts.extend(q.as_ref().map(|q| format!("q={}", q.replace(' ', "+").replace('Ä', "%C3%84"))));
            parts.extend(status.map(|s| format!("status={}", STATUSES[s])));
            parts.extend(kind.map(|k| format!("kind={}", ["physical", "logical"][k])));
            parts.extend(before.map(|day| format!("warranty_before=2028-01-{day:02}")));
            parts.extend((*sort > 0).then(|| format!("sort={}", SORTS[*sort])));
            let expected = filtered(&assets, query);
            for client in [&client, &without_index.client(&client)] {
                let mut found: Vec<String> = Vec::new();
                for page in 1.. {
                    let reply = client.get(&format!("/assets?{}&page={page}", parts.join("&"))).await.json();
                    assert_eq!(reply["meta"]["total"], expected.len(), "{parts:?} of {assets:?}");
                    let ids: Vec<String> =
                        reply["data"].as_array().unwrap().iter().map(|a| a["id"].as_str().unwrap().to_owned()).collect();
                    if ids.is_empty() {
                        break;
                    }
                    found.extend(ids);
                }
                prop_assert_eq!(&found, &expected, "{:?}", parts);
            }
        }
        Ok(())
    });
}

#[tokio::test(start_paused = true)]
async fn exact_filters_find_one_asset() {
    let (api, client) = Api::with_tenant().await;
    let without_index = api.replica(0, 0).client(&client);
    let user = client.user("Ada").await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let model = client.model("Dell", "XPS", &laptop).await;
    let texts: Vec<&str> = ASSET_FILTERS.iter().map(|(field, _)| *field).filter(|field| *field != "asset_tag").collect();
    let mut wanted = json!({"name": "wanted", "model_id": model});
    let (mut other, mut empty) = (json!({"name": "other"}), json!({"name": "empty"}));
    for field in &texts {
        (wanted[field], other[field], empty[field]) = ("AbC-1".into(), "AbC-2".into(), "".into());
    }
    let wanted = client.post("/assets", wanted).await.data();
    client.patch(&format!("/assets/{}", wanted["id"].as_str().unwrap()), json!({"assigned_to": user})).await.data();
    client.asset(other).await;
    client.asset(json!({"name": "none"})).await;
    client.asset(empty).await;
    let tag = wanted["asset_tag"].as_str().unwrap();
    for field in &texts {
        for (text, found) in [("AbC-1", "wanted"), ("AbC-2", "other"), ("", "empty")] {
            let query = format!("?{field}={text}");
            assert_eq!(names(&client, &query).await, [found], "{query}");
            assert_eq!(names(&without_index, &query).await, [found], "{query}");
        }
    }
    for query in [
        format!("?asset_tag={tag}"),
        format!("?model_id={model}"),
        format!("?assigned_to={user}"),
        format!("?asset_type_id={laptop}"),
    ] {
        assert_eq!(names(&client, &query).await, ["wanted"], "{query}");
        assert_eq!(names(&without_index, &query).await, ["wanted"], "{query}");
    }
    assert_eq!(names(&client, "?q=ABC-").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_too_large_for_a_response_is_refused_with_a_limit_that_fits() {
    let client = over_http().await;
    let (notes, text) = ("😀".repeat(10_000), "\"".repeat(16_000));
    for n in 0..60 {
        client.asset(json!({"name": format!("a{n}"), "notes": notes, "custom_fields": {"t": text}})).await;
    }
    let refused = client.get("/assets?limit=100").await;
    assert_eq!(refused.field_errors(), ["limit"]);
    let detail = refused.json()["errors"][0]["detail"].as_str().unwrap().to_owned();
    let fit: usize = detail.rsplit(' ').find_map(|word| word.parse().ok()).unwrap();
    let page = client.get(&format!("/assets?limit={fit}")).await;
    let json = page.json();
    assert_eq!((&json["meta"]["total"], json["data"].as_array().unwrap().len()), (&json!(60), fit));
    assert!((5_500_000..6_291_556).contains(&serde_json::to_string(page.text()).unwrap().len()));
}
