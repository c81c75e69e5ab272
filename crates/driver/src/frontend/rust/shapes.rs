//! Describes types for the program's checks of shadows, from debug information.
//!
//! ```text
//! %words = call ptr @__ferrozyme_request_shape(ptr %name, i64 %length)      in description_of::<T>
//! @__ferrozyme_shape_0123456789abcdef                                       takes the place of %words
//! %tag = call i64 @__ferrozyme_request_tag(ptr %name, i64 %length)          in tag_of::<T>
//! i64 0x0000000800000004                                                    takes the place of %tag: 4 bytes from byte 8 on
//! ```
//!
//! `crates/ferrozyme/src/interface/described.rs` reads the words, `unused.rs` beside it the tag. Only paths to floats are described. Unions, raw pointers, and types without
//! debug information count as plain: nothing is checked there.

use ferrozyme_llvm::{Context, DebugKind, DebugType, Linkage, Module, UnnamedAddress, Value};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The foreign function that stands for descriptions. Its name begins with that of requests, so that modules that call it are rewritten.
const SHAPE_SYMBOL: &str = "__ferrozyme_request_shape";

/// The foreign function that stands for positions of tags.
const TAG_SYMBOL: &str = "__ferrozyme_request_tag";

/// What the symbols of descriptions start with. They are told by their names in copies of the module, which are read from its new bitcode.
const SHAPE_PREFIX: &str = "__ferrozyme_shape_";

/// Whether a module asks about types.
pub(crate) fn asks_about_types(module: Module<'_>) -> bool {
    [SHAPE_SYMBOL, TAG_SYMBOL]
        .iter()
        .any(|symbol| module.function(symbol).is_some())
}

/// Answers all questions about types in a module.
pub(crate) fn describe_types<'c>(context: &'c Context, module: Module<'c>) {
    answer(context, module, SHAPE_SYMBOL, |ty| {
        match ty.and_then(Description::of) {
            Some(words) => constant(context, module, &words),
            None => context.pointer().zero(),
        }
    });
    answer(context, module, TAG_SYMBOL, |ty| {
        let tag = ty.and_then(tag_of).unwrap_or(u64::MAX);
        context.integer(64).constant(i128::from(tag as i64))
    });
}

/// Replaces the calls of a foreign function by answers about the type for which the caller is instantiated, if that is known.
fn answer<'c>(
    context: &'c Context,
    module: Module<'c>,
    symbol: &str,
    answer_for: impl Fn(Option<DebugType<'c>>) -> Value<'c>,
) {
    let Some(foreign) = module.function(symbol) else {
        return;
    };
    for call in foreign.users() {
        if !call.is_instruction() || !call.is_call() || call.called() != foreign {
            continue;
        }
        let function = call.block().map(|block| block.function());
        let asked = function.map_or(Vec::new(), |function| function.generic_arguments(context));
        let ty = match asked[..] {
            [ty] => Some(ty),
            _ => None,
        };
        call.replace_uses_with(answer_for(ty));
        call.erase();
    }
}

/// The position of an enum's tag: its first byte in the upper 32 bits, and the number of its bytes in the lower ones. An enum with one variant has none.
fn tag_of(ty: DebugType<'_>) -> Option<u64> {
    let [variants] = ty.members()[..] else {
        return None;
    };
    if ty.kind() != DebugKind::Structure || variants.kind() != DebugKind::Variants {
        return None;
    }
    let Some(tag) = variants.discriminator() else {
        return Some(0);
    };
    let (start, bytes) = (tag.offset(), tag.base()?.size());
    let fits = bytes > 0 && start + bytes <= u64::from(u32::MAX) && start + bytes <= ty.size();
    fits.then_some(start << 32 | bytes)
}

/// Takes the descriptions back in a module whose functions are differentiated: what looks into values by numbers of bytes has no derivative. Positions of tags stay, since
/// unused bytes are cleared in derivatives of derivatives too.
pub(crate) fn forget_shapes<'c>(context: &'c Context, module: Module<'c>) {
    for global in module.globals().collect::<Vec<_>>() {
        if global.name().starts_with(SHAPE_PREFIX) {
            global.replace_uses_with(context.pointer().zero());
        }
    }
}

fn constant<'c>(context: &'c Context, module: Module<'c>, words: &[u64]) -> Value<'c> {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    let name = format!("{SHAPE_PREFIX}{:016x}", hasher.finish());
    if let Some(known) = module.global(&name) {
        return known;
    }
    let word = context.integer(64);
    let values: Vec<Value<'c>> = words
        .iter()
        .map(|&value| word.constant(i128::from(value as i64)))
        .collect();
    let global = module.add_global(&name, word.array(words.len() as u64));
    global.set_initialiser(Some(word.array_constant(&values)));
    global.set_global_constant(true);
    global.set_linkage(Linkage::Private);
    global.set_unnamed_address(UnnamedAddress::Global);
    global
}

/// A node of a description.
enum Node {
    Plain,
    Structure(Vec<(u64, NodeId, String)>),
    Pointer {
        owner: u64,
        to: NodeId,
    },
    Slice {
        owner: u64,
        places: [u64; 2],
        size: u64,
        element: NodeId,
    },
    Vector {
        places: [u64; 3],
        size: u64,
        alignment: u64,
        element: NodeId,
    },
    Object {
        places: [u64; 2],
    },
    Array {
        count: u64,
        stride: u64,
        element: NodeId,
    },
    Variants {
        size: u64,
        tag: [u64; 2],
        variants: Vec<Variant>,
    },
    Ring {
        places: [u64; 4],
        size: u64,
        element: NodeId,
    },
}

struct Variant {
    value: Option<u64>,
    name: String,
    node: NodeId,
    fields: Vec<(u64, u64)>,
}

type NodeId = usize;

/// Who owns what a pointer leads to.
const OWNED: u64 = 0;
const SHARED: u64 = 1;
const COUNTED: u64 = 2;

/// Floats in the bytes of a value, and in memory that it leads to.
const HAS_FLOATS: u64 = 1;
const LEADS_TO_FLOATS: u64 = 2;

/// How many types are looked at for one description.
const MAX_NODES: usize = 10_000;

struct Description<'c> {
    nodes: Vec<Node>,
    flags: Vec<u64>,
    known: HashMap<DebugType<'c>, NodeId>,
}

impl<'c> Description<'c> {
    /// The words that describe a type.
    fn of(ty: DebugType<'c>) -> Option<Vec<u64>> {
        let mut description = Description {
            nodes: Vec::new(),
            flags: Vec::new(),
            known: HashMap::new(),
        };
        let root = description.node(ty);
        let complete = description.nodes.len() < MAX_NODES && ty.size() > 0;
        complete.then(|| description.words(ty.size(), root))
    }

    /// The node of a type. Types may be recursive, so that a type has its node before it is known what is inside; until then it counts as one with floats.
    fn node(&mut self, ty: DebugType<'c>) -> NodeId {
        if let Some(&known) = self.known.get(&ty) {
            return known;
        }
        let id = self.nodes.len();
        self.nodes.push(Node::Plain);
        self.flags.push(HAS_FLOATS | LEADS_TO_FLOATS);
        self.known.insert(ty, id);
        let (node, flags) = match self.nodes.len() < MAX_NODES {
            true => self.look_inside(ty),
            false => (Node::Plain, 0),
        };
        self.nodes[id] = node;
        self.flags[id] = flags;
        id
    }

    fn look_inside(&mut self, ty: DebugType<'c>) -> (Node, u64) {
        const PLAIN: (Node, u64) = (Node::Plain, 0);
        match ty.kind() {
            DebugKind::Basic => match ty.name().as_str() {
                "f16" | "f32" | "f64" | "f128" => (Node::Plain, HAS_FLOATS),
                _ => PLAIN,
            },
            DebugKind::Array => self.array(ty).unwrap_or(PLAIN),
            DebugKind::Pointer => self.pointer(ty).unwrap_or(PLAIN),
            DebugKind::Structure => self.structure(ty),
            _ => PLAIN,
        }
    }

    fn array(&mut self, ty: DebugType<'c>) -> Option<(Node, u64)> {
        let of = ty.base()?;
        let count = ty.size().checked_div(of.size())?;
        let element = self.node(of);
        let flags = self.flags[element];
        let node = match self.is_plain(element) {
            true => Node::Plain,
            false => Node::Array {
                count,
                stride: of.size(),
                element,
            },
        };
        Some((node, flags))
    }

    fn pointer(&mut self, ty: DebugType<'c>) -> Option<(Node, u64)> {
        let owner = owner_of(&ty.name())?;
        let to = self.node(ty.base()?);
        Some(self.leading(to, Node::Pointer { owner, to }))
    }

    /// A node that leads to memory with such elements; nothing if there are no floats.
    fn leading(&self, to: NodeId, node: Node) -> (Node, u64) {
        match self.flags[to] {
            0 => (Node::Plain, 0),
            _ => (node, LEADS_TO_FLOATS),
        }
    }

    fn structure(&mut self, ty: DebugType<'c>) -> (Node, u64) {
        let members = ty.members();
        if let Some(known) = self.known_structure(ty, &members) {
            return known;
        }
        if let [only] = members[..]
            && only.kind() == DebugKind::Variants
        {
            return self.variants(ty, only).unwrap_or((Node::Plain, 0));
        }
        self.fields(&members)
    }

    fn fields(&mut self, members: &[DebugType<'c>]) -> (Node, u64) {
        let (mut flags, mut fields) = (0, Vec::new());
        for member in members {
            let Some(ty) = member.base() else { continue };
            let node = self.node(ty);
            flags |= self.flags[node];
            if !self.is_plain(node) {
                fields.push((member.offset(), node, member.name()));
            }
        }
        match fields.is_empty() {
            true => (Node::Plain, flags),
            false => (Node::Structure(fields), flags),
        }
    }

    /// Types of the standard library and of the language that lead to memory, by their names.
    fn known_structure(
        &mut self,
        ty: DebugType<'c>,
        members: &[DebugType<'c>],
    ) -> Option<(Node, u64)> {
        let (modules, name) = (ty.modules(), ty.name());
        let modules: Vec<&str> = modules.iter().map(String::as_str).collect();
        let base = name.split('<').next().unwrap_or_default();
        let global = name.ends_with("alloc::alloc::Global>");
        let word = |name: &str| word_in(members, name);
        match (&modules[..], base) {
            (["alloc", "vec"], "Vec") | (["alloc", "collections", "vec_deque"], "VecDeque") => {
                let of = *ty.arguments().first()?;
                let (places, size) = ([word("ptr")?, word("len")?, word("cap")?], of.size());
                let element = self.node(of);
                let alignment = alignment_of(of);
                let node = match (base, alignment) {
                    ("VecDeque", _) => Node::Ring {
                        places: [places[0], places[1], places[2], word("head")?],
                        size,
                        element,
                    },
                    (_, Some(alignment)) if global => Node::Vector {
                        places,
                        size,
                        alignment,
                        element,
                    },
                    _ => Node::Slice {
                        owner: OWNED,
                        places: [places[0], places[1]],
                        size,
                        element,
                    },
                };
                Some(self.leading(element, node))
            }
            (["alloc", "rc"], "Rc") | (["alloc", "sync"], "Arc") => {
                let pointer = pointer_in(members)?;
                let to = self.node(pointer.base()?);
                let owner = COUNTED;
                Some(self.leading(to, Node::Pointer { owner, to }))
            }
            // Weak pointers own nothing.
            (["alloc", "rc"] | ["alloc", "sync"], "Weak") => Some((Node::Plain, 0)),
            ([], _) => {
                let owner = owner_of(&name)?;
                let [first, second] = members else {
                    return None;
                };
                let places = [first.offset(), second.offset()];
                match [first.name().as_str(), second.name().as_str()] {
                    ["data_ptr", "length"] => {
                        let of = first.base()?.base()?;
                        let (size, element) = (of.size(), self.node(of));
                        let node = Node::Slice {
                            owner,
                            places,
                            size,
                            element,
                        };
                        Some(self.leading(element, node))
                    }
                    ["pointer", "vtable"] => Some((Node::Object { places }, LEADS_TO_FLOATS)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn variants(&mut self, ty: DebugType<'c>, part: DebugType<'c>) -> Option<(Node, u64)> {
        let members = part.members();
        let Some(tag) = part.discriminator() else {
            // There is one variant, or none.
            return members
                .first()
                .and_then(|only| only.base())
                .map(|only| self.fields(&only.members()));
        };
        let bytes = tag.base()?.size();
        if bytes == 0 || bytes > 8 {
            return None;
        }
        let mask = u64::MAX >> (64 - 8 * bytes);
        let (mut flags, mut variants) = (0, Vec::new());
        for member in members {
            let inside = member.base()?;
            let node = self.node(inside);
            flags |= self.flags[node];
            let value = member.variant_value();
            let value = value.map(|value| value.as_bits().map(|bits| bits as u64 & mask));
            let fields = inside.members().into_iter();
            variants.push(Variant {
                // A value that cannot be read could be any.
                value: match value {
                    Some(None) => return None,
                    value => value.flatten(),
                },
                name: member.name(),
                node,
                fields: fields
                    .map(|field| (field.offset(), field.offset() + field.size()))
                    .collect(),
            });
        }
        if flags == 0 {
            return Some((Node::Plain, 0));
        }
        let node = Node::Variants {
            size: ty.size(),
            tag: [tag.offset(), bytes],
            variants,
        };
        Some((node, flags))
    }

    fn is_plain(&self, node: NodeId) -> bool {
        // What is not yet known leads to memory: it is recursive.
        matches!(self.nodes[node], Node::Plain)
            && self.flags[node] != (HAS_FLOATS | LEADS_TO_FLOATS)
    }

    /// All nodes as words.
    fn words(&self, size: u64, root: NodeId) -> Vec<u64> {
        let mut writer = Writer {
            words: vec![size, 0],
            starts: vec![0; self.nodes.len()],
            patches: vec![(1, root)],
        };
        for (id, node) in self.nodes.iter().enumerate() {
            writer.write(id, node, self.flags[id]);
        }
        for (place, node) in writer.patches {
            writer.words[place] = writer.starts[node];
        }
        writer.words
    }
}

/// Writes nodes; references to nodes are filled in at the end.
struct Writer {
    words: Vec<u64>,
    starts: Vec<u64>,
    patches: Vec<(usize, NodeId)>,
}

impl Writer {
    fn node(&mut self, node: NodeId) {
        self.patches.push((self.words.len(), node));
        self.words.push(0);
    }

    /// Writes a name, and gives its place.
    fn name(&mut self, name: &str) -> u64 {
        let place = self.words.len() as u64;
        self.words.push(name.len() as u64);
        for part in name.as_bytes().chunks(8) {
            let mut bytes = [0; 8];
            bytes[..part.len()].copy_from_slice(part);
            self.words.push(u64::from_le_bytes(bytes));
        }
        place
    }

    fn write(&mut self, id: NodeId, node: &Node, flags: u64) {
        match node {
            Node::Plain => self.begin(id, [0, flags]),
            Node::Structure(fields) => {
                let names = fields.iter().map(|(_, _, name)| self.name(name));
                let names: Vec<u64> = names.collect();
                self.begin(id, [1, flags, fields.len() as u64]);
                for ((offset, node, _), name) in fields.iter().zip(names) {
                    self.words.push(*offset);
                    self.node(*node);
                    self.words.push(name);
                }
            }
            Node::Pointer { owner, to } => {
                self.begin(id, [2, flags, *owner]);
                self.node(*to);
            }
            Node::Slice {
                owner,
                places: [address, length],
                size,
                element,
            } => {
                self.begin(id, [3, flags, *owner, *address, *length, *size]);
                self.node(*element);
            }
            Node::Vector {
                places: [address, length, capacity],
                size,
                alignment,
                element,
            } => {
                let words = [4, flags, *address, *length, *capacity, *size, *alignment];
                self.begin(id, words);
                self.node(*element);
            }
            Node::Object {
                places: [address, table],
            } => self.begin(id, [5, flags, *address, *table]),
            Node::Array {
                count,
                stride,
                element,
            } => {
                self.begin(id, [6, flags, *count, *stride]);
                self.node(*element);
            }
            Node::Variants {
                size,
                tag: [tag, bytes],
                variants,
            } => {
                let mut places = Vec::new();
                for variant in variants {
                    let name = self.name(&variant.name);
                    places.push(self.words.len() as u64);
                    let value = variant.value;
                    self.words
                        .extend([u64::from(value.is_some()), value.unwrap_or(0), name]);
                    self.node(variant.node);
                    self.words.push(variant.fields.len() as u64);
                    let ranges = variant.fields.iter();
                    self.words
                        .extend(ranges.flat_map(|&(start, end)| [start, end]));
                }
                let words = [7, flags, *size, *tag, *bytes, variants.len() as u64];
                self.begin(id, words);
                self.words.extend(places);
            }
            Node::Ring {
                places: [address, length, capacity, first],
                size,
                element,
            } => {
                let words = [8, flags, *address, *length, *capacity, *first, *size];
                self.begin(id, words);
                self.node(*element);
            }
        }
    }

    fn begin<const N: usize>(&mut self, id: NodeId, words: [u64; N]) {
        self.starts[id] = self.words.len() as u64;
        self.words.extend(words);
    }
}

/// Who owns what a pointer of this name leads to; `None` if it is a raw pointer or a function.
fn owner_of(name: &str) -> Option<u64> {
    if name.starts_with("&mut ") || name.starts_with("alloc::boxed::Box<") {
        Some(OWNED)
    } else if name.starts_with('&') {
        Some(SHARED)
    } else {
        None
    }
}

/// The alignment of a type, which debug information tells of all but numbers.
fn alignment_of(ty: DebugType<'_>) -> Option<u64> {
    let alignment = match (ty.kind(), ty.alignment()) {
        (DebugKind::Basic, 0) => ty.size(),
        (_, told) => told,
    };
    alignment.is_power_of_two().then_some(alignment)
}

/// Where a field of this name is in a structure, or in one that is a field of it: the first that is found, if it is a word.
fn word_in(members: &[DebugType<'_>], name: &str) -> Option<u64> {
    let found = members.iter().find(|member| member.name() == name);
    if let Some(found) = found {
        return (found.size() == 8).then(|| found.offset());
    }
    members.iter().find_map(|member| {
        let inside = member.base()?;
        if inside.kind() != DebugKind::Structure {
            return None;
        }
        Some(member.offset() + word_in(&inside.members(), name)?)
    })
}

/// The type of the first pointer in a structure, or in one that is a field of it, unless there is something beside the address.
fn pointer_in<'c>(members: &[DebugType<'c>]) -> Option<DebugType<'c>> {
    let is_wide = |member: &DebugType<'_>| matches!(member.name().as_str(), "vtable" | "length");
    if members.iter().any(is_wide) {
        return None;
    }
    members.iter().find_map(|member| {
        let ty = member.base()?;
        match ty.kind() {
            DebugKind::Pointer => Some(ty),
            DebugKind::Structure => pointer_in(&ty.members()),
            _ => None,
        }
    })
}
