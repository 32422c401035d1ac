//! How an asset is shown: in responses and in exports.

/// Declares a struct that shows an asset, each field with its value, and the function that makes it, which begins with the
/// statements given here. `..details,` stands for the fields of these details.
macro_rules! asset_view {
    (
        $(#[$attribute:meta])* pub struct $name:ident {
            $($(#[$before_attribute:meta])* $before:ident: $before_type:ty = $before_value:expr,)*
            ..$details:expr,
            $($(#[$after_attribute:meta])* $after:ident: $after_type:ty = $after_value:expr,)*
        }
        $(#[$new_attribute:meta])* $visibility:vis fn $new:ident($($argument:ident: $argument_type:ty),*) -> Self {
            $($statement:stmt;)*
        }
    ) => {
        shared::fields::asset_details! { asset_view! @with
            [$(#[$attribute])* pub struct $name]
            [$($(#[$before_attribute])* pub(crate) $before: $before_type,)*]
            [$($(#[$after_attribute])* pub(crate) $after: $after_type,)*]
        }

        impl $name {
            $(#[$new_attribute])*
            $visibility fn $new($($argument: $argument_type),*) -> Self {
                $($statement)*
                let details = $details;
                shared::fields::asset_details! { asset_view! @value
                    [$($before: $before_value,)*] details [$($after: $after_value,)*]
                }
            }
        }
    };
    (@with [$($head:tt)*] [$($before:tt)*] [$($after:tt)*] $($(#[$shown:meta])* $field:ident: $type:ident as $cell:ident $declaration:tt)*) => {
        $($head)* {
            $($before)*
            $($(#[$shown])* #[schema(required)] pub(crate) $field: Option<$type>,)*
            $($after)*
        }
    };
    (@value [$($before:tt)*] $details:ident [$($after:tt)*] $($(#[$shown:meta])* $field:ident: $type:ident as $cell:ident $declaration:tt)*) => {
        Self { $($before)* $($field: $details.$field,)* $($after)* }
    };
}
pub(crate) use asset_view;
