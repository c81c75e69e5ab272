//! Inactive fields must not share what they refer to with others.
//!
//! A shadow has a clone of an inactive field. Where the clone leads to the same memory as the field, derivatives that reach floats there would be
//! added to the value itself.

use syn::visit::{self, Visit};
use syn::{Error, PathSegment, Result, Type, TypeBareFn, TypePtr, TypeReference};

/// Types whose clones lead to the same memory.
const HANDLES: [&str; 4] = ["Rc", "Arc", "Weak", "Cow"];

/// Refuses types of inactive fields whose clones share memory that may hold floats.
pub(super) fn refuse(ty: &Type) -> Result<()> {
    let mut finder = Finder(None);
    visit::visit_type(&mut finder, ty);
    match finder.0 {
        None => Ok(()),
        Some(what) => Err(Error::new_spanned(
            ty,
            format!(
                "an inactive field can not hold {what}\n\
                 help: a shadow would share its memory with the value, and derivatives be added to the value: \
                 leave the attribute away and give the shadow memory of its own, or pass this data as a `Const` argument"
            ),
        )),
    }
}

struct Finder(Option<&'static str>);

impl<'ast> Visit<'ast> for Finder {
    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        // There are no floats in text.
        let is_text = matches!(&*reference.elem, Type::Path(path) if path.path.is_ident("str"));
        if !is_text {
            self.0 = Some("a reference");
        }
    }

    fn visit_type_ptr(&mut self, _: &'ast TypePtr) {
        self.0 = Some("a raw pointer");
    }

    fn visit_path_segment(&mut self, segment: &'ast PathSegment) {
        if HANDLES.iter().any(|handle| segment.ident == handle) {
            self.0 = Some("shared data (`Rc`, `Arc` and their like)");
        }
        visit::visit_path_segment(self, segment);
    }

    // The arguments of a function are not stored.
    fn visit_type_bare_fn(&mut self, _: &'ast TypeBareFn) {}
}
