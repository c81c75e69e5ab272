//! Handles that know whether what they stand for was freed.
//!
//! A [`Handle`] is an address of LLVM's and the time at which LLVM gave it to us. Time is counted in *frees*: whatever deletes something notes its address with the number
//! of the deletion. A handle may be used if its address was not freed after the handle was made, which costs one comparison as long as nothing was freed since, and a look
//! into a table otherwise. One that may not panics.
//!
//! What frees, and what is noted then:
//!
//! | operation | freed |
//! |---|---|
//! | `Value::erase`, `Block::erase`, `Value::delete_body` | the instruction, block, function or variable, and what is in it |
//! | `Module::dispose`, `Module::link` (its source) | the module and all that is in it |
//! | `Module::link` | globals that the source has, too, if another one stands for them afterwards |
//! | `Module::run_passes`, `Value::run_passes`, `Module::strip_debug_information` | what was there before and is not there afterwards |
//! | `Value::replace_uses_with` of a constant | constants that are made of it, which LLVM makes anew |
//!
//! Types, attributes, metadata and all other constants belong to the context, whose lifetime handles carry. Contexts and handles stay on the thread that made them
//! (they are neither `Send` nor `Sync`), so that each thread counts for itself.
//!
//! What this does not see: where a pass deletes something and makes something else at the same address, an old handle stands for the new one. That is a mistake of who kept it, but it
//! still stands for something that lives.

use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::sys::{BlockRef, ModuleRef, ValueRef, call};

thread_local! {
    static FREES: Cell<u64> = const { Cell::new(0) };
    /// When each address was freed last.
    static FREED: RefCell<FxHashMap<usize, u64>> = RefCell::default();
}

/// See the file's head. Handles are equal if their addresses are.
pub(crate) struct Handle<T> {
    address: *mut T,
    made: u64,
}

impl<T> Handle<T> {
    /// Of an address that LLVM has just given.
    pub(crate) fn new(address: *mut T) -> Handle<T> {
        debug_assert!(!address.is_null());
        Handle {
            address,
            made: FREES.get(),
        }
    }

    /// The address, for calls of LLVM's functions.
    #[track_caller]
    pub(crate) fn get(self) -> *mut T {
        if self.made != FREES.get() {
            let freed = FREED.with_borrow(|freed| freed.get(&self.number()).copied());
            assert!(
                freed.is_none_or(|freed| freed <= self.made),
                "bug in Ferrozyme: something of LLVM's is used after it was deleted"
            );
        }
        self.address
    }

    /// The address as a number, which may be asked for at any time.
    pub(crate) fn number(self) -> usize {
        self.address as usize
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Handle<T> {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Handle<T>) -> bool {
        self.address == other.address
    }
}

impl<T> Eq for Handle<T> {}

impl<T> Hash for Handle<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address.hash(state);
    }
}

/// Addresses of what LLVM may free.
#[derive(Default)]
pub(crate) struct Addresses(FxHashSet<usize>);

impl Addresses {
    /// A module and all that is in it.
    pub(crate) fn of_module(module: ModuleRef) -> Addresses {
        let mut all = Addresses::default();
        all.0.insert(module as usize);
        each(
            call!(LLVMGetFirstFunction(module)),
            |value| call!(LLVMGetNextFunction(value)),
            |value| all.add_global(value),
        );
        each(
            call!(LLVMGetFirstGlobal(module)),
            |value| call!(LLVMGetNextGlobal(value)),
            |value| all.add_global(value),
        );
        each(
            call!(LLVMGetFirstGlobalAlias(module)),
            |value| call!(LLVMGetNextGlobalAlias(value)),
            |value| all.add_global(value),
        );
        each(
            call!(LLVMGetFirstGlobalIFunc(module)),
            |value| call!(LLVMGetNextGlobalIFunc(value)),
            |value| all.add_global(value),
        );
        all
    }

    /// Functions with all that is in them, variables and aliases.
    pub(crate) fn of_globals(globals: impl Iterator<Item = ValueRef>) -> Addresses {
        let mut all = Addresses::default();
        globals.for_each(|global| all.add_global(global));
        all
    }

    /// A function and all that is in it.
    pub(crate) fn of_function(function: ValueRef) -> Addresses {
        let mut all = Addresses::default();
        all.add_function(function);
        all
    }

    /// A block and its instructions.
    pub(crate) fn of_block(block: BlockRef) -> Addresses {
        let mut all = Addresses::default();
        all.add_block(block);
        all
    }

    /// An instruction or a variable.
    pub(crate) fn of_value(value: ValueRef) -> Addresses {
        let mut all = Addresses::default();
        all.0.insert(value as usize);
        all
    }

    /// Constants that are made of another.
    pub(crate) fn of_constants_with(constant: ValueRef) -> Addresses {
        let mut all = Addresses::default();
        all.add_constants_with(constant);
        all
    }

    fn add_global(&mut self, global: ValueRef) {
        if call!(LLVMIsAFunction(global)).is_null() {
            self.0.insert(global as usize);
        } else {
            self.add_function(global);
        }
        self.add_constants_with(global);
    }

    fn add_function(&mut self, function: ValueRef) {
        self.0.insert(function as usize);
        for index in 0..call!(LLVMCountParams(function)) {
            self.0.insert(call!(LLVMGetParam(function, index)) as usize);
        }
        each(
            call!(LLVMGetFirstBasicBlock(function)),
            |block| call!(LLVMGetNextBasicBlock(block)),
            |block| self.add_block(block),
        );
    }

    fn add_block(&mut self, block: BlockRef) {
        self.0.insert(block as usize);
        each(
            call!(LLVMGetFirstInstruction(block)),
            |instruction| call!(LLVMGetNextInstruction(instruction)),
            |instruction| {
                self.0.insert(instruction as usize);
            },
        );
    }

    fn add_constants_with(&mut self, constant: ValueRef) {
        let mut work = vec![constant];
        while let Some(constant) = work.pop() {
            each(
                call!(LLVMGetFirstUse(constant)),
                |current| call!(LLVMGetNextUse(current)),
                |current| {
                    let user = call!(LLVMGetUser(current));
                    if call!(LLVMIsConstant(user)) != 0
                        && call!(LLVMIsAGlobalValue(user)).is_null()
                        && self.0.insert(user as usize)
                    {
                        work.push(user);
                    }
                },
            );
        }
    }

    /// Notes that all of these are freed now.
    pub(crate) fn free(self) {
        self.free_but_for(&Addresses::default());
    }

    /// Notes that those of these that are not among others are freed now.
    pub(crate) fn free_but_for(self, alive: &Addresses) {
        let now = FREES.get() + 1;
        FREES.set(now);
        FREED.with_borrow_mut(|freed| {
            let gone = self
                .0
                .into_iter()
                .filter(|address| !alive.0.contains(address));
            freed.extend(gone.map(|address| (address, now)));
        });
    }
}

/// Walks one of LLVM's lists.
fn each<T>(first: *mut T, next: impl Fn(*mut T) -> *mut T, mut visit: impl FnMut(*mut T)) {
    let mut current = first;
    while !current.is_null() {
        visit(current);
        current = next(current);
    }
}
