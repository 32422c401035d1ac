//! A macro for changes of a record's fields.

/// Declares the change of a record: the struct, and the method that returns the record with the change applied. Each field that
/// can change is `set`, or `set_or_clear` if it can also become empty. Missing fields stay as they are. The fields behind `and`
/// have rules of their own: the method leaves them alone.
macro_rules! record_change {
    (
        $(#[doc = $doc:literal])* $change:ident of $record:ident::$method:ident {
            $($need:ident $field:ident: $type:ty,)*
        } $(and { $($rest:tt)* })?
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Default)]
        pub struct $change {
            $(pub $field: record_change!(@type $need $type),)*
            $($($rest)*)?
        }

        impl $record {
            #[must_use]
            pub fn $method(&self, change: &$change) -> Self {
                let ($change { $($field,)* .. }, mut next) = (change.clone(), self.clone());
                $(record_change!(@apply $need next $field);)*
                next
            }
        }
    };
    (@type set $type:ty) => { Option<$type> };
    (@type set_or_clear $type:ty) => { $crate::record::Patch<$type> };
    (@apply set $next:ident $field:ident) => { $next.$field = $field.unwrap_or($next.$field) };
    (@apply set_or_clear $next:ident $field:ident) => { $next.$field = $field.or($next.$field) };
}
pub(crate) use record_change;
