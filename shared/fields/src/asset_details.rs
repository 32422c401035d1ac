//! The details of an asset: the fields that have no rules of their own.

/// Calls a macro with the details of an asset, behind its other arguments.
///
/// This is their only declaration. Record, history, bodies, responses, filters, list index, imports and exports follow from
/// it, and so do assetctl's columns. A field has:
///
/// - its description in responses, with attributes if its JSON differs from the stored form
/// - its name, its type, and the form of its cells ([`CellType`](crate::CellType))
/// - `sent`: its description in bodies
/// - `filter`: the description of the query parameter that compares a text exactly, if there is one. The projection of
///   `list_index` in template.yaml must then name the field.
/// - `headings`: of [`Column`](crate::Column)
#[macro_export]
macro_rules! asset_details {
    ($macro:ident! $($argument:tt)*) => {
        $macro! {
            $($argument)*
            /// Serial number.
            serial_number: Line as Text {
                sent: "Serial number.",
                filter: ["Filter by serial number, exactly."],
                headings: "serialnumber serial serialno serialnr sn deviceserialnumber hardwareserial seriennummer seriennr \
                    numérodesérie númerodeserie ndesérie ndeserie nºdesérie nºdeserie nsérie nºsérie nodesérie",
            }
            /// Date of purchase.
            purchase_date: Date as Date {
                sent: "Date of purchase, `YYYY-MM-DD`.",
                filter: [],
                headings: "purchasedate purchased purchasedtime purchasetime podate invoicedate dateofpurchase kaufdatum \
                    anschaffungsdatum dateachat datedachat fechadecompra",
            }
            /// Purchase price, with the digits that were sent.
            #[serde(serialize_with = "Price::serialize_number")]
            #[schema(value_type = Option<PriceNumber>)]
            purchase_price: Price as Number {
                sent: "Purchase price, a number or its decimal text. Every digit is kept.",
                filter: [],
                headings: "purchaseprice purchasedprice purchasecost price cost preis kaufpreis anschaffungspreis anschaffungskosten \
                    prix prixdachat precio preciodecompra",
            }
            /// Last day of the warranty.
            warranty_until: Date as Date {
                sent: "Last day of the warranty, `YYYY-MM-DD`.",
                filter: [],
                headings: "warrantyexpiration warrantyend warrantyexpires warrantyexpirationdate warrantyexpiry warrantyuntil \
                    warrantyenddate garantiebis garantieende findegarantie garantíahasta",
            }
        }
    };
}
