//! Reads the descriptors of derivative requests from constants.
//!
//! A descriptor is a `repr(C)` structure that the macros of the `ferrozyme` crate write (its types stand in that crate's
//! `descriptor.rs`, and must agree with the offsets here). At link time it is bytes with
//! addresses in them, which a [`Constants`] provides; nothing is trusted: a malformed descriptor is an error.

use crate::constants::{Blob, Constants};
use crate::requests::Mode;
use ferrozyme_ir::{Field, Layout, Scalar};

/// How deep layouts behind pointers are followed. Recursive types end here; inference serves beyond.
const POINTER_DEPTH: u32 = 4;

/// How many scalars a layout may have before it is taken as unknown.
const MAX_FIELDS: usize = 4096;

/// A derivative request as the user wrote it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Descriptor {
    /// Forward or reverse.
    pub(crate) mode: Mode,
    /// How many shadows come with each argument.
    pub(crate) width: u32,
    /// Where the attribute stands.
    pub(crate) file: String,
    /// From 1 on.
    pub(crate) line: u32,
    /// From 1 on.
    pub(crate) column: u32,
    /// The path of the function that is differentiated.
    pub(crate) primal: String,
    /// The name of its derivative.
    pub(crate) derivative: String,
    /// Arguments, then the result if there is one.
    pub(crate) slots: Vec<Slot>,
}

/// What a slot of memory given to the shim holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Slot {
    /// Whether it is the result.
    pub(crate) result: bool,
    /// What it means for the derivative.
    pub(crate) activity: Activity,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// Its alignment.
    pub(crate) align: u64,
    /// What it holds is a reference to memory that nothing writes meanwhile.
    pub(crate) shared: bool,
    /// What it holds is the only reference to its memory.
    pub(crate) unique: bool,
    /// The argument's name.
    pub(crate) name: String,
    /// What its bytes are, where known.
    pub(crate) layout: Option<Layout>,
    /// For a reference: how many of what its layout says are behind it, or in one element of a slice. That is more than one for arrays.
    pub(crate) count: Option<u64>,
}

/// The activities of `std::autodiff`. Shadows that hold all directions are split before they are passed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub(crate) enum Activity {
    Const,
    Active,
    ActiveOnly,
    Duplicated,
    DuplicatedOnly,
    Dual,
    DualOnly,
}

impl Activity {
    const ALL: [Activity; 7] = [
        Activity::Const,
        Activity::Active,
        Activity::ActiveOnly,
        Activity::Duplicated,
        Activity::DuplicatedOnly,
        Activity::Dual,
        Activity::DualOnly,
    ];
}

impl Descriptor {
    /// How many shadow slots stand behind a slot in the request's arguments.
    pub(crate) fn shadows(&self, slot: &Slot) -> usize {
        match slot.activity {
            Activity::Const => 0,
            _ => self.width as usize,
        }
    }

    /// How many pointers a request passes besides primal and descriptor.
    pub(crate) fn pointer_count(&self) -> usize {
        self.slots.iter().map(|slot| 1 + self.shadows(slot)).sum()
    }
}

/// Reads the descriptor that stands `offset` bytes behind `symbol`.
pub(crate) fn read_descriptor<C: Constants>(
    constants: &C,
    symbol: C::Symbol,
    offset: i64,
) -> Result<Descriptor, String> {
    let at = Place::new(constants, symbol, offset)?;
    if at.bytes(0, 8)? != b"FZREQ003" {
        return Err(
            "the descriptor is of another version: the `ferrozyme` crate and `cargo ferrozyme` must be of the same version"
                .to_owned(),
        );
    }
    let mode = match at.u32(8)? {
        0 => Mode::Forward,
        1 => Mode::Reverse,
        2 => Mode::Primal,
        other => return Err(format!("unknown mode {other}")),
    };
    let count = at.u64(80)?;
    let slots = match at.place(72)? {
        Some(slots) => (0..count)
            .map(|index| read_slot(&slots.moved(index * SLOT_SIZE)))
            .collect::<Result<_, _>>()?,
        None if count == 0 => Vec::new(),
        None => return Err("the slots are missing".to_owned()),
    };
    Ok(Descriptor {
        mode,
        width: at.u32(12)?,
        line: at.u32(16)?,
        column: at.u32(20)?,
        file: at.text(24)?,
        primal: at.text(40)?,
        derivative: at.text(56)?,
        slots,
    })
}

fn read_slot<C: Constants>(at: &Place<'_, C>) -> Result<Slot, String> {
    let activity = at.u32(4)? as usize;
    let flags = at.u64(24)?;
    let (layout, count) = match at.place(48)? {
        Some(layout) => (read_layout(&layout, POINTER_DEPTH)?, count_behind(&layout)?),
        None => (None, None),
    };
    Ok(Slot {
        result: at.u32(0)? == 1,
        activity: *Activity::ALL
            .get(activity)
            .ok_or_else(|| format!("unknown activity {activity}"))?,
        size: at.u64(8)?,
        align: at.u64(16)?,
        shared: flags & 1 != 0,
        unique: flags & 2 != 0,
        name: at.text(32)?,
        layout,
        count,
    })
}

/// How many elements of what is known of them the pointer at the start of a value leads to, or one element of a slice.
fn count_behind<C: Constants>(layout: &Place<'_, C>) -> Result<Option<u64>, String> {
    Ok(match layout.place(8)? {
        Some(first) if layout.u64(16)? > 0 && first.u32(8)? == POINTER => Some(first.u64(24)?),
        _ => None,
    })
}

/// `None` where the layout has unknown bytes: a description with holes would claim that they are padding.
fn read_layout<C: Constants>(at: &Place<'_, C>, depth: u32) -> Result<Option<Layout>, String> {
    let stride = at.u64(0)?;
    let mut fields = Vec::new();
    if !gather_fields(at, 0, depth, &mut fields)? || stride == 0 {
        return Ok(None);
    }
    fields.sort_by_key(|field| field.offset);
    let apart = fields
        .windows(2)
        .all(|pair| pair[0].offset + pair[0].scalar.bytes() <= pair[1].offset);
    let inside = fields
        .iter()
        .all(|field| field.offset + field.scalar.bytes() <= stride);
    Ok((apart && inside).then_some(Layout { fields, stride }))
}

/// Adds the scalars of a layout that starts at `base`; false if some bytes are unknown.
fn gather_fields<C: Constants>(
    at: &Place<'_, C>,
    base: u64,
    depth: u32,
    fields: &mut Vec<Field>,
) -> Result<bool, String> {
    let count = at.u64(16)?;
    let Some(list) = at.place(8)? else {
        return Ok(count == 0);
    };
    for index in 0..count {
        let at = list.moved(index * FIELD_SIZE);
        let offset = base + at.u64(0)?;
        let (kind, bytes) = (at.u32(8)?, at.u32(12)?);
        let (repeat, stride) = (at.u64(16)?, at.u64(24)?);
        for element in 0..repeat {
            let offset = offset + element * stride;
            if fields.len() > MAX_FIELDS {
                return Ok(false);
            }
            let scalar = match kind {
                0 => return Ok(false),
                1 if (1..=16).contains(&bytes) && bytes.is_power_of_two() => {
                    Scalar::Int(bytes as u8 * 8)
                }
                2 => Scalar::F32,
                3 => Scalar::F64,
                POINTER => Scalar::Ptr,
                6 => Scalar::F16,
                5 => {
                    let Some(nested) = at.place(32)? else {
                        return Ok(false);
                    };
                    if !gather_fields(&nested, offset, depth, fields)? {
                        return Ok(false);
                    }
                    continue;
                }
                other => return Err(format!("unknown kind of field {other}")),
            };
            let pointee = match (scalar, depth.checked_sub(1)) {
                (Scalar::Ptr, Some(depth)) => match at.pointee(40)? {
                    Some(pointee) => read_layout(&pointee, depth)?.map(Box::new),
                    None => None,
                },
                _ => None,
            };
            fields.push(Field {
                offset,
                scalar,
                pointee,
            });
        }
    }
    Ok(true)
}

/// The kind of a field that is a pointer.
const POINTER: u32 = 4;

const SLOT_SIZE: u64 = 56;
const FIELD_SIZE: u64 = 48;

/// A place within a constant.
struct Place<'c, C: Constants> {
    constants: &'c C,
    blob: std::rc::Rc<Blob<C::Symbol>>,
    offset: u64,
}

impl<'c, C: Constants> Place<'c, C> {
    fn new(constants: &'c C, symbol: C::Symbol, offset: i64) -> Result<Place<'c, C>, String> {
        let blob = constants
            .blob(symbol)
            .ok_or("the descriptor is not a constant")?;
        Ok(Place {
            constants,
            blob: std::rc::Rc::new(blob),
            offset: u64::try_from(offset).map_err(|_| "the descriptor has a negative offset")?,
        })
    }

    fn moved(&self, by: u64) -> Place<'c, C> {
        Place {
            constants: self.constants,
            blob: self.blob.clone(),
            offset: self.offset + by,
        }
    }

    fn bytes(&self, at: u64, count: u64) -> Result<&[u8], String> {
        let start = self.offset + at;
        usize::try_from(start)
            .ok()
            .zip(usize::try_from(start + count).ok())
            .and_then(|(start, end)| self.blob.bytes.get(start..end))
            .ok_or_else(|| "the descriptor is shorter than it should be".to_owned())
    }

    fn u32(&self, at: u64) -> Result<u32, String> {
        let bytes = self.bytes(at, 4)?;
        Ok(u32::from_le_bytes(
            bytes.try_into().expect("four bytes were asked for"),
        ))
    }

    fn u64(&self, at: u64) -> Result<u64, String> {
        let bytes = self.bytes(at, 8)?;
        Ok(u64::from_le_bytes(
            bytes.try_into().expect("eight bytes were asked for"),
        ))
    }

    fn address(&self, at: u64) -> Option<(C::Symbol, i64)> {
        self.blob.addresses.get(&(self.offset + at)).copied()
    }

    fn place(&self, at: u64) -> Result<Option<Place<'c, C>>, String> {
        self.address(at)
            .map(|(symbol, offset)| Place::new(self.constants, symbol, offset))
            .transpose()
    }

    fn pointee(&self, at: u64) -> Result<Option<Place<'c, C>>, String> {
        self.address(at)
            .and_then(|(function, _)| self.constants.returned_address(function))
            .map(|(symbol, offset)| Place::new(self.constants, symbol, offset))
            .transpose()
    }

    fn text(&self, at: u64) -> Result<String, String> {
        let length = self.u64(at + 8)?;
        match self.place(at)? {
            Some(text) => Ok(String::from_utf8_lossy(text.bytes(0, length)?).into_owned()),
            None => Ok(String::new()),
        }
    }
}
