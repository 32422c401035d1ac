//! The endpoints for labels: a QR code with the asset's tag and name.

mod code;
mod formats;
mod layout;
mod page;
mod text;

use self::formats::LabelSvg;
use self::layout::{Blank, Label, Sheet, TooSmall};
use axum::response::{IntoResponse, Response};
use shared::auth::Caller;
use shared::auth::caller::AssetsRead;
use shared::domain::assets::asset::Asset;
use shared::domain::assets::label::{LabelFormat, LabelIds, LabelSize, Resolution, SheetLayout, SkippedLabels};
use shared::domain::record::Stored;
use shared::domain::tenants::tenant::Tenant;
use shared::domain::values::field_error::{FieldError, ValueError};
use shared::domain::values::id::AssetId;
use shared::http::openapi::{Describe, InputErrors, ResourceErrors, Schemas, add_headers, add_response};
use shared::http::requests::params::{Path, Query};
use shared::http::responses::html::{self, AcceptedLanguage, HtmlPage};
use shared::http::responses::{ApiError, ApiResponse, or_not_found};
use shared::store::{BatchGet, BatchResult, Reader};
use utoipa::PartialSchema;
use utoipa::openapi::path::Operation;

shared::query! {
    /// Format of a label.
    pub struct LabelQuery {
        /// `svg`, `png` with 300 dots per inch, or `zpl` for label printers. Default `svg`.
        format: LabelFormat as LabelFormat,
        /// Width x height in millimetres, each from 12 to 160, with at most one decimal. Default `50x20`.
        size: LabelSize as LabelSize,
        /// Resolution of the label printer in dots per inch, only for `zpl`. Default `203`.
        dpi: Resolution as Resolution,
    }
}

shared::query! {
    /// Assets and paper for a page of labels.
    pub struct LabelsQuery {
        /// IDs of 1 to 100 assets, separated by commas, in the order of the labels. Required.
        ids: LabelIds as LabelIds,
        /// Label sheet. Default `a4-24`.
        layout: SheetLayout as SheetLayout,
        /// Number of labels already used on the first sheet. Default 0.
        skip: SkippedLabels as SkippedLabels,
    }
}

pub struct LabelFile(ApiResponse);

impl IntoResponse for LabelFile {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl Describe for LabelFile {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let kinds = ["image/svg+xml", "image/png", "text/plain"].map(|kind| (kind, String::schema()));
        add_response(operation, "200", "The label", kinds);
        add_headers(operation, "200", &["Content-Disposition", "Content-Security-Policy", "X-Content-Type-Options"]);
    }
}

/// Reads the assets, and the tenant, whose settings define the contents of codes.
async fn read(store: &Reader, ids: &[AssetId]) -> Result<(Tenant, BatchResult), ApiError> {
    let batch = BatchGet::new().with::<Tenant>(Some(store.id())).with_all::<Asset>(ids.iter().copied());
    let records = store.batch_get(batch).await?;
    let tenant = records.get::<Tenant>(Some(store.id()))?;
    let tenant = tenant.ok_or_else(|| ApiError::Internal("the key's tenant has no record".into()))?;
    Ok((tenant.value, records))
}

fn invalid(parameter: &str, reason: impl Into<ValueError>) -> ApiError {
    ApiError::Invalid(vec![FieldError::parameter(parameter, reason)])
}

fn too_small(parameter: &str, tag: &str, error: TooSmall) -> ApiError {
    let needed = match error.needed {
        Some(side) => format!("a label of at least {side}x{side} mm"),
        None => "a larger label than the service offers; shorten label_url_template in the settings".to_owned(),
    };
    invalid(parameter, format!("is too small: the code of {tag} needs {needed}"))
}

/// Get an asset's label
///
/// A QR code of the asset tag, or of `label_url_template` in the settings, with tag and name in plain text.
#[utoipa::path(get, path = "/assets/{id}/label", tag = "assets", responses(ResourceErrors))]
pub async fn get_asset_label(
    caller: Caller<AssetsRead>,
    Query(query): Query<LabelQuery>,
    Path(id): Path<AssetId>,
) -> Result<LabelFile, ApiError> {
    let (tenant, records) = read(&caller.store, &[id]).await?;
    let asset = or_not_found(records.get::<Asset>(Some(id))?)?.value;
    let (format, size) = (query.format.unwrap_or(LabelFormat::Svg), query.size.unwrap_or_default());
    let blank = match (format, query.dpi) {
        (LabelFormat::Zpl, dpi) => Blank::printer(size, dpi.unwrap_or(Resolution::Dpi203)),
        (_, Some(_)) => return Err(invalid("dpi", "can only be sent with format=zpl")),
        (_, None) => Blank::image(size),
    };
    let label = Label::new(&asset, tenant.label_url_template.as_ref(), blank);
    let label = label.map_err(|error| too_small("size", &asset.asset_tag, error))?;
    let (content_type, content) = match format {
        LabelFormat::Svg => {
            let svg = LabelSvg::new(&label, None).to_string();
            ("image/svg+xml", svg.into_bytes())
        }
        LabelFormat::Png => ("image/png", label.png().map_err(|error| ApiError::Internal(error.into()))?),
        LabelFormat::Zpl => ("text/plain; charset=utf-8", label.zpl().into_bytes()),
    };
    Ok(LabelFile(html::file(content_type, content, &asset.asset_tag, format.as_str())?))
}

/// Get a page of labels
///
/// A page of label sheets, to print at 100 % and without margins. The number in a layout's name is the number of labels per
/// sheet; more labels continue on further sheets. The printing note is in the language that `Accept-Language` prefers (en, de, fr
/// or es), or else in the language of the tenant's `locale`, or in English.
#[utoipa::path(get, path = "/assets/labels", tag = "assets", responses(InputErrors))]
pub async fn get_label_page(
    caller: Caller<AssetsRead>,
    Query(query): Query<LabelsQuery>,
    language: AcceptedLanguage,
) -> Result<HtmlPage, ApiError> {
    let LabelsQuery { ids, layout, skip } = query;
    let ids = ids.ok_or_else(|| invalid("ids", ValueError::required()))?;
    let layout = layout.unwrap_or(SheetLayout::A4x24);
    let sheet = Sheet::new(layout);
    let (skip, labels) = (skip.unwrap_or_default().get(), sheet.labels());
    if skip >= labels {
        return Err(invalid("skip", format!("must be less than {labels}, the number of labels of a sheet {layout}")));
    }
    let (tenant, records) = read(&caller.store, ids.ids()).await?;
    let assets = ids.ids().iter().filter_map(|id| records.get_readable(Some(*id)).transpose());
    let assets: Vec<Stored<Asset>> = assets.collect::<Result<_, _>>()?;
    let unknown = ids.unknown(|id| assets.iter().any(|asset| asset.value.id == id));
    if !unknown.is_empty() {
        return Err(ApiError::Invalid(unknown));
    }
    let label = |asset: &Stored<Asset>| {
        let label = Label::new(&asset.value, tenant.label_url_template.as_ref(), sheet.blank());
        label.map_err(|error| too_small("layout", &asset.value.asset_tag, error))
    };
    let labels = assets.iter().map(label).collect::<Result<Vec<Label>, ApiError>>()?;
    let language = language.or_language_of(&tenant.locale);
    let page =
        page::render(&labels, &sheet, layout.as_str(), skip, language).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(HtmlPage(html::page(page, &page::style(&sheet))?))
}
