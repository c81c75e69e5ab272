//! Classes as descriptions of parameters.

use super::{Bytes, Class, Contradiction, Kind, Objects, Place};
use ferrozyme_ir::{Layout, Scalar};

impl Objects {
    /// A class from an offset on as the description of a parameter. None where not all of a period is known.
    ///
    /// A class that does not repeat gets the stride 0, and only says what it knows. A pointer back to a class that it lies in is given without pointee.
    pub fn layout_of(&self, class: Class, offset: i64) -> Option<Layout> {
        self.layout_within(class, offset, &mut Vec::new())
    }

    fn layout_within(&self, class: Class, offset: i64, path: &mut Vec<Class>) -> Option<Layout> {
        let cells = self.cells(class, offset);
        let (fields, stride) = match (cells.period, &cells.head[..]) {
            (0, _) => (&cells.head, 0),
            (period, []) => (&cells.body, period),
            _ => return None,
        };
        path.push(class);
        let mut layout = Layout {
            fields: Vec::new(),
            stride,
        };
        let mut complete = true;
        for field in fields {
            let mut add = |scalar: Scalar, pointee: Option<Layout>| {
                layout.fields.push(ferrozyme_ir::Field {
                    offset: field.offset as u64,
                    scalar,
                    pointee: pointee.map(Box::new),
                });
            };
            match field.kind {
                Kind::Float(scalar) => add(scalar, None),
                Kind::Integer => layout.fields.extend(integers(field)),
                Kind::Pointer(place) => add(Scalar::Ptr, self.layout_behind(place, path)),
                // Two fields at one place say that it is now this, now that.
                Kind::Conflict(Contradiction::FloatAndPointer(scalar))
                    if field.bytes == scalar.bytes() =>
                {
                    let place = self.pointer_at(class, offset.saturating_add(field.offset));
                    add(scalar, None);
                    add(
                        Scalar::Ptr,
                        place.and_then(|place| self.layout_behind(place, path)),
                    );
                }
                Kind::Conflict(Contradiction::FloatAndInteger(scalar))
                    if field.bytes == scalar.bytes() =>
                {
                    add(scalar, None);
                    add(Scalar::Int(8 * field.bytes as u8), None);
                }
                // What nobody uses in memory that is made here is nothing to what is called.
                Kind::Unknown if !self.is_made_here(class) => complete &= stride == 0,
                Kind::Padding | Kind::Unknown => {
                    // Where nothing repeats, gaps are what nothing is known of: so it is said that nothing of interest is there.
                    if stride == 0 {
                        layout.fields.extend(integers(field));
                    }
                }
                Kind::Conflict(_) => complete &= stride == 0,
            }
        }
        path.pop();
        complete.then_some(layout)
    }

    /// What a pointer leads to. Depth costs memory, as each pointer gets a copy of what it points to.
    fn layout_behind(&self, place: Place, path: &mut Vec<Class>) -> Option<Layout> {
        let known = !path.contains(&place.class) && path.len() < 4;
        let at = known.then_some(place.span.as_exact()).flatten()?;
        self.layout_within(place.class, at, path)
    }
}

/// Bytes that are integers, as many as it takes.
fn integers(bytes: &Bytes) -> impl Iterator<Item = ferrozyme_ir::Field> {
    let (mut offset, end) = (bytes.offset as u64, bytes.offset as u64 + bytes.bytes);
    std::iter::from_fn(move || {
        let rest = end.checked_sub(offset).filter(|&rest| rest > 0)?;
        let size = (1 << rest.ilog2()).min(16);
        let field = ferrozyme_ir::Field {
            offset,
            scalar: Scalar::Int(8 * size as u8),
            pointee: None,
        };
        offset += size;
        Some(field)
    })
}
