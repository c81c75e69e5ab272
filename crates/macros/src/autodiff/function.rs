//! The annotated function: a free function, a nested one, a method, or one declared in a trait.
//!
//! Only its head is parsed. The body is passed on as it is, so that it costs nothing and may hold any syntax.

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Result, Signature, Token, Visibility};

use super::check::error;

/// A function's head, and its body as tokens.
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    /// Absent for a function that a trait only declares.
    pub(crate) body: Option<TokenStream>,
}

impl Parse for Function {
    fn parse(input: ParseStream) -> Result<Function> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        if !starts_function(input) {
            return Err(error(
                input.span(),
                "autodiff must be applied to function",
                "put the attribute on a function, a method, or a function of a trait",
            ));
        }
        let signature: Signature = input.parse()?;
        let body = if input.peek(Token![;]) {
            input.parse::<Token![;]>()?;
            None
        } else {
            Some(input.parse()?)
        };
        Ok(Function {
            attributes,
            visibility,
            signature,
            body,
        })
    }
}

/// Whether `fn` follows, after keywords and strings that may precede it.
fn starts_function(input: ParseStream) -> bool {
    let mut cursor = input.cursor();
    while let Some((token, next)) = cursor.token_tree() {
        match token {
            TokenTree::Ident(word) if word == "fn" => return true,
            TokenTree::Ident(word)
                if ["const", "async", "unsafe", "extern", "safe"]
                    .iter()
                    .any(|qualifier| word == qualifier) => {}
            TokenTree::Literal(_) => {}
            _ => return false,
        }
        cursor = next;
    }
    false
}
