//! A macro for enums whose values are strings in the API, such as the status of an asset.

/// Declares an enum whose variants are strings, with its JSON form, its OpenAPI schema, `Display`, `FromStr`, `ALL` and
/// `as_str`. Parsing any other text fails with an error that lists all values.
///
/// ```ignore
/// string_enum! {
///     /// Whether a process can be started.
///     ProcessStatus {
///         /// Can be started.
///         Active = "active",
///         /// Can't be started.
///         Inactive = "inactive",
///     }
/// }
/// ```
#[macro_export]
macro_rules! string_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:tt,)* }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        $(#[$meta])*
        pub enum $name {$(
            $(#[$variant_meta])*
            #[serde(rename = $text)]
            $variant,
        )*}

        impl $name {
            /// All values, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the string that represents the value in the API.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(self.as_str()) }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::values::field_error::ValueError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text).ok_or_else(|| {
                    $crate::values::field_error::ValueError::not_one_of([$($text),*])
                })
            }
        }
    };
}
pub use string_enum;

#[cfg(test)]
mod tests {
    use crate::assets::asset::Status;

    #[test]
    fn an_unknown_value_is_refused_with_a_list_of_all_values() {
        assert_eq!("in_use".parse(), Ok(Status::InUse));
        assert_eq!(
            "lost".parse::<Status>().map_err(|error| error.to_string()),
            Err("must be one of in_stock, preparing, in_use, in_service, returned, scrapped".to_owned())
        );
    }
}
