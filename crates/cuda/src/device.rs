//! A GPU with its stream, memory and kernels.

#![allow(unsafe_code, reason = "calls of the driver")]

use crate::blas::{Blas, WORKSPACE, address_of, pointers, worth_a_library};
use crate::library::{Address, CudaLibrary, Handle};
use crate::ptx::{INCREMENT, kernel_name};
use ferrozyme_backend::Error;
use ferrozyme_gpu::{Abilities, Device, Gemm, GpuProgram, Kernel, Place, Product, Step, launches};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_void};
use std::ptr::{null, null_mut};
use std::rc::Rc;

/// Numbers of the driver's headers.
mod number {
    pub(super) const COMPUTE_CAPABILITY_MAJOR: i32 = 75;
    pub(super) const COMPUTE_CAPABILITY_MINOR: i32 = 76;
    pub(super) const STREAM_NON_BLOCKING: u32 = 1;
    pub(super) const EVENT_DEFAULT: u32 = 0;
    pub(super) const EVENT_DISABLE_TIMING: u32 = 2;
    pub(super) const JIT_ERROR_LOG_BUFFER: i32 = 5;
    pub(super) const JIT_ERROR_LOG_BUFFER_SIZE_BYTES: i32 = 6;
}

/// How many streams there are for what may run at the same time.
const LANES: usize = 4;
/// How many writes may be under way, each with the memory that it is made from.
const UNDER_WAY: usize = 8;
/// The oldest processor that kernels are made for: it has everything that LLVM needs for half precision of both kinds.
const OLDEST: (i32, i32) = (8, 0);
/// The newest processor that this LLVM is known to make kernels for; newer ones take them, too.
const NEWEST: (i32, i32) = (9, 0);

/// What kernels are made for, whatever GPU there is: kernels are the same then, wherever they are made.
pub const ABILITIES: Abilities = Abilities {
    group: 1024,
    units: 128,
    atomic_f32: true,
    atomic_f64: true,
    exchange: true,
};

/// The driver and the GPU that was chosen.
pub(crate) struct Driver {
    library: Rc<CudaLibrary>,
    device: i32,
    context: Handle,
    name: String,
    capability: (i32, i32),
}

impl Drop for Driver {
    fn drop(&mut self) {
        // SAFETY: the context was retained once.
        unsafe { (self.library.release_context)(self.device) };
    }
}

impl Driver {
    /// Loads the driver and finds the GPU; the error says what is missing.
    pub(crate) fn load(number: usize) -> Result<Driver, String> {
        let library = Rc::new(CudaLibrary::load()?);
        let check = |what, status| check(&library, what, status).map_err(|e| e.to_string());
        // SAFETY: each call writes one value of the type that it is given.
        unsafe {
            check("cuInit", (library.initialise)(0))?;
            let mut count = 0;
            check("cuDeviceGetCount", (library.device_count)(&mut count))?;
            if number as i64 >= i64::from(count) {
                return Err(format!(
                    "there is no GPU {number}: CUDA's driver is there and has {count}, counted from 0"
                ));
            }
            let mut device = 0;
            check("cuDeviceGet", (library.device)(&mut device, number as i32))?;
            let mut name = [0; 128];
            check(
                "cuDeviceGetName",
                (library.device_name)(name.as_mut_ptr(), 128, device),
            )?;
            let name = CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned();
            let (mut major, mut minor) = (0, 0);
            let kind = number::COMPUTE_CAPABILITY_MAJOR;
            check(
                "cuDeviceGetAttribute",
                (library.device_attribute)(&mut major, kind, device),
            )?;
            let kind = number::COMPUTE_CAPABILITY_MINOR;
            check(
                "cuDeviceGetAttribute",
                (library.device_attribute)(&mut minor, kind, device),
            )?;
            if (major, minor) < OLDEST {
                let (least, rest) = OLDEST;
                return Err(format!(
                    "{name} has compute capability {major}.{minor}; at least {least}.{rest} is needed"
                ));
            }
            let mut context = null_mut();
            check(
                "cuDevicePrimaryCtxRetain",
                (library.retain_context)(&mut context, device),
            )?;
            Ok(Driver {
                library,
                device,
                context,
                name,
                capability: (major, minor),
            })
        }
    }

    /// The processor that kernels are made for.
    pub(crate) fn processor(&self) -> String {
        let (major, minor) = self.capability.min(NEWEST);
        format!("sm_{major}{minor}")
    }

    /// Loads kernels, and makes a stream and buffers of these sizes.
    pub(crate) fn stream(
        self,
        ptx: &str,
        program: &GpuProgram,
        sizes: &[usize],
    ) -> Result<Stream, Error> {
        let mut stream = Stream {
            driver: self,
            lanes: Vec::new(),
            workspaces: Vec::new(),
            module: null_mut(),
            increment: null_mut(),
            launchables: Vec::new(),
            kernels: program.kernels.clone(),
            description: program.describe(),
            products: Vec::new(),
            blas: None,
            pointers: FxHashMap::default(),
            buffers: Vec::new(),
            pool: Rc::default(),
            writes: VecDeque::new(),
            captured: FxHashMap::default(),
            marks: Vec::new(),
        };
        stream.enter()?;
        stream.load(ptx)?;
        stream.increment = stream.find(INCREMENT)?;
        for kernel in &program.kernels {
            let function = stream.find(&kernel_name(&kernel.name))?;
            stream.launchables.push(Launchable {
                function,
                groups: kernel.groups,
                items: kernel.items,
                local: kernel.local as u32,
            });
            let product = kernel.product.as_ref();
            let worth = product.and_then(|p| Some((p.clone(), worth_a_library(p)?)));
            stream.products.push(worth);
        }
        for _ in 0..LANES {
            let library = stream.library();
            let mut handle = null_mut();
            // SAFETY: a context is current; each call writes one value.
            let status =
                unsafe { (library.create_stream)(&mut handle, number::STREAM_NON_BLOCKING) };
            stream.check("cuStreamCreate", status)?;
            stream.lanes.push(handle);
        }
        for &size in sizes {
            let address = stream.allocate(size)?;
            stream.buffers.push(address);
        }
        stream.load_blas()?;
        if stream.blas.is_some() {
            for (kernel, places) in launches(&program.steps) {
                stream.list_batches(kernel, places)?;
            }
            stream.finish()?;
        }
        Ok(stream)
    }
}

fn check(library: &CudaLibrary, what: &str, status: i32) -> Result<(), Error> {
    if status == 0 {
        return Ok(());
    }
    let mut text = null();
    // SAFETY: the driver gives a text that lives as long as it does, or none.
    let text = unsafe {
        (library.error_text)(status, &mut text);
        match text.is_null() {
            true => "an unknown error".into(),
            false => CStr::from_ptr(text).to_string_lossy(),
        }
    };
    Err(Error::Device(format!(
        "CUDA's {what} gave the error {status}: {text}"
    )))
}

/// A kernel with its index space.
#[derive(Clone, Copy)]
struct Launchable {
    function: Handle,
    groups: u32,
    items: u32,
    local: u32,
}

/// The product of matrices that a library computes in place of a kernel.
type LibraryProduct = Option<(Product, Gemm)>;

/// Memory of the host that the device copies from and to while both go on working.
struct Pinned {
    address: *mut c_void,
    size: usize,
}

/// A stream that runs everything in order, with all that it needs. What is captured runs in several lanes, each a stream.
pub(crate) struct Stream {
    driver: Driver,
    /// The streams. Everything but what is captured is in the first one.
    pub(crate) lanes: Vec<Handle>,
    /// For each lane, memory for the library of matrix products if there is one.
    workspaces: Vec<Address>,
    module: Handle,
    /// The kernel that adds one to a counter.
    increment: Handle,
    launchables: Vec<Launchable>,
    /// The kernels, as far as it matters for their order.
    pub(crate) kernels: Vec<Kernel>,
    /// What the report says of the kernels.
    description: String,
    /// For each kernel, what a library computes instead if it is there.
    products: Vec<LibraryProduct>,
    /// The library, if it is there and has something to do.
    blas: Option<Blas>,
    /// For products with batches of batches, by their kernels and the addresses of their arrays: where the device has the addresses of all batches.
    pointers: FxHashMap<(usize, [Address; 3]), Address>,
    buffers: Vec<Address>,
    /// Pinned memory that nobody uses.
    pool: Rc<RefCell<Vec<Pinned>>>,
    /// Memory that is being written from.
    writes: VecDeque<(Handle, Pinned)>,
    /// Graphs of lists of steps, by their addresses and lengths.
    pub(crate) captured: FxHashMap<(usize, usize), Handle>,
    /// Events that say when they happened.
    marks: Vec<Handle>,
}

/// Bytes that are being read.
pub(crate) struct Reading {
    event: Handle,
    pinned: Pinned,
    size: usize,
}

impl Stream {
    pub(crate) fn library(&self) -> &CudaLibrary {
        &self.driver.library
    }

    pub(crate) fn check(&self, what: &str, status: i32) -> Result<(), Error> {
        check(self.library(), what, status)
    }

    /// Makes the context that of this thread: each run may be on another one.
    fn enter(&self) -> Result<(), Error> {
        // SAFETY: the context is retained.
        let status = unsafe { (self.library().set_context)(self.driver.context) };
        self.check("cuCtxSetCurrent", status)
    }

    /// Queues a launch in a lane.
    fn launch_in(&self, lane: usize, kernel: usize, places: &[Place]) -> Result<(), Error> {
        let mut addresses: Vec<Address> = places.iter().map(|&place| self.address(place)).collect();
        if let (Some(blas), Some((product, gemm))) = (&self.blas, &self.products[kernel]) {
            blas.go_to(self.lanes[lane], self.workspaces[lane])?;
            let arrays = [0, 1, 2].map(|array| address_of(product, array, &addresses));
            return match self.pointers.get(&(kernel, arrays)) {
                Some(&pointers) => blas.multiply_at(product, gemm, pointers),
                None => blas.multiply(product, gemm, &addresses),
            };
        }
        self.launch_function(self.launchables[kernel], &mut addresses, lane)
    }

    /// Queues a copy in a lane.
    fn copy_in(&self, lane: usize, to: Place, from: Place, bytes: usize) -> Result<(), Error> {
        let (to, from) = (self.address(to), self.address(from));
        // SAFETY: both places are in their buffers and do not overlap.
        let status = unsafe { (self.library().copy)(to, from, bytes, self.lanes[lane]) };
        self.check("cuMemcpyDtoDAsync", status)
    }

    /// Queues a step that is a launch, a copy or a count in a lane; a count is an addition to what is there.
    pub(crate) fn queue_in(&self, lane: usize, step: &Step, status: Place) -> Result<(), Error> {
        match step {
            Step::Launch { kernel, places } => {
                let mut places = places.clone();
                places.push(status);
                self.launch_in(lane, *kernel, &places)
            }
            &Step::Copy { to, from, bytes } => self.copy_in(lane, to, from, bytes),
            &Step::Count { to } => {
                let kernel = Launchable {
                    function: self.increment,
                    groups: 1,
                    items: 1,
                    local: 0,
                };
                self.launch_function(kernel, &mut [self.address(to)], lane)
            }
            _ => {
                let problem = "a step cannot be replayed (a bug in Ferrozyme)";
                Err(Error::Device(problem.to_owned()))
            }
        }
    }

    /// Memory of the device, which is released with the stream.
    fn allocate(&self, size: usize) -> Result<Address, Error> {
        let mut address = 0;
        // SAFETY: a context is current.
        let status = unsafe { (self.library().allocate)(&mut address, size) };
        self.check("cuMemAlloc", status)?;
        Ok(address)
    }

    /// Loads the library of matrix products if there are any for it.
    fn load_blas(&mut self) -> Result<(), Error> {
        if self.products.iter().all(Option::is_none) {
            return Ok(());
        }
        self.blas = Blas::load();
        if self.blas.is_some() {
            for _ in 0..self.lanes.len() {
                let workspace = self.allocate(WORKSPACE)?;
                self.workspaces.push(workspace);
            }
        }
        Ok(())
    }

    /// Writes the addresses of all batches of a product to the device, if it has batches of batches.
    fn list_batches(&mut self, kernel: usize, places: &[Place]) -> Result<(), Error> {
        let Some((product, gemm)) = &self.products[kernel] else {
            return Ok(());
        };
        if product.outer.count == 1 {
            return Ok(());
        }
        let addresses: Vec<Address> = places.iter().map(|&place| self.address(place)).collect();
        let arrays = [0, 1, 2].map(|array| address_of(product, array, &addresses));
        if self.pointers.contains_key(&(kernel, arrays)) {
            return Ok(());
        }
        let Some(all) = pointers(product, gemm, &addresses) else {
            return Ok(());
        };
        let bytes: Vec<u8> = all.into_iter().flat_map(Address::to_ne_bytes).collect();
        let list = self.allocate(bytes.len())?;
        self.pointers.insert((kernel, arrays), list);
        let place = Place {
            buffer: self.buffers.len(),
            offset: 0,
        };
        self.buffers.push(list);
        self.write(place, bytes)
    }

    fn load(&mut self, ptx: &str) -> Result<(), Error> {
        let text = CString::new(ptx).unwrap_or_default();
        let mut log = vec![0u8; 8192];
        let mut kinds = [
            number::JIT_ERROR_LOG_BUFFER,
            number::JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), log.len() as *mut c_void];
        // SAFETY: the text ends in a zero; the log has the size that the options say.
        let status = unsafe {
            (self.library().load_module)(
                &mut self.module,
                text.as_ptr().cast(),
                2,
                kinds.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        self.check("cuModuleLoadDataEx", status).map_err(|error| {
            let log = String::from_utf8_lossy(&log);
            let log = log.trim_end_matches('\0');
            let name = &self.driver.name;
            Error::Compile(format!(
                "the driver of {name} refuses the kernels (a bug in Ferrozyme): {error}; {log}"
            ))
        })
    }

    fn find(&self, name: &str) -> Result<Handle, Error> {
        let text = CString::new(name).unwrap_or_default();
        let mut function = null_mut();
        // SAFETY: the module is loaded.
        let status =
            unsafe { (self.library().function)(&mut function, self.module, text.as_ptr()) };
        self.check(&format!("cuModuleGetFunction({name})"), status)?;
        Ok(function)
    }

    fn address(&self, place: Place) -> Address {
        self.buffers[place.buffer] + place.offset as u64
    }

    /// Pinned memory of at least a size.
    fn pinned(&self, size: usize) -> Result<Pinned, Error> {
        let mut pool = self.pool.borrow_mut();
        if let Some(position) = pool.iter().position(|pinned| pinned.size >= size) {
            return Ok(pool.swap_remove(position));
        }
        let size = size.next_power_of_two().max(256);
        let mut address = null_mut();
        // SAFETY: a context is current.
        let status = unsafe { (self.library().allocate_pinned)(&mut address, size) };
        self.check("cuMemAllocHost", status)?;
        Ok(Pinned { address, size })
    }

    /// An event that happens when everything in a lane so far is done.
    pub(crate) fn event_in(&self, lane: usize) -> Result<Handle, Error> {
        self.event_with(number::EVENT_DISABLE_TIMING, lane)
    }

    fn event_with(&self, flags: u32, lane: usize) -> Result<Handle, Error> {
        let mut event = null_mut();
        // SAFETY: a context is current, and the stream is of it.
        unsafe {
            let status = (self.library().create_event)(&mut event, flags);
            self.check("cuEventCreate", status)?;
            let status = (self.library().record_event)(event, self.lanes[lane]);
            self.check("cuEventRecord", status)?;
        }
        Ok(event)
    }

    fn wait_for(&self, event: Handle) -> Result<(), Error> {
        // SAFETY: the event is valid, and is not used behind.
        unsafe {
            let status = (self.library().wait_for_event)(event);
            self.check("cuEventSynchronize", status)?;
            self.check("cuEventDestroy", (self.library().destroy_event)(event))
        }
    }

    fn reap(&mut self, rest: usize) -> Result<(), Error> {
        while self.writes.len() > rest {
            if let Some((event, pinned)) = self.writes.pop_front() {
                self.wait_for(event)?;
                self.pool.borrow_mut().push(pinned);
            }
        }
        Ok(())
    }

    fn launch_function(
        &self,
        kernel: Launchable,
        addresses: &mut [Address],
        lane: usize,
    ) -> Result<(), Error> {
        let mut parameters: Vec<*mut c_void> = addresses
            .iter_mut()
            .map(|address| std::ptr::from_mut(address).cast())
            .collect();
        // SAFETY: the parameters are addresses, as many as the kernel takes; the driver copies them.
        let status = unsafe {
            (self.library().launch)(
                kernel.function,
                kernel.groups,
                1,
                1,
                kernel.items,
                1,
                1,
                kernel.local,
                self.lanes[lane],
                parameters.as_mut_ptr(),
                null_mut(),
            )
        };
        self.check("cuLaunchKernel", status)
    }
}

impl Device for Stream {
    type Pending = Reading;

    fn write(&mut self, to: Place, bytes: Vec<u8>) -> Result<(), Error> {
        self.enter()?;
        let pinned = self.pinned(bytes.len())?;
        // SAFETY: the pinned memory is large enough and nobody else's until the event has happened.
        let status = unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), pinned.address.cast(), bytes.len());
            (self.library().write)(self.address(to), pinned.address, bytes.len(), self.lanes[0])
        };
        self.check("cuMemcpyHtoDAsync", status)?;
        let event = self.event_in(0)?;
        self.writes.push_back((event, pinned));
        self.reap(UNDER_WAY)
    }

    fn read(&self, from: Place, bytes: usize) -> Result<Reading, Error> {
        self.enter()?;
        let pinned = self.pinned(bytes)?;
        // SAFETY: as for `write`.
        let status = unsafe {
            (self.library().read)(pinned.address, self.address(from), bytes, self.lanes[0])
        };
        self.check("cuMemcpyDtoHAsync", status)?;
        Ok(Reading {
            event: self.event_in(0)?,
            pinned,
            size: bytes,
        })
    }

    fn wait(&self, pending: Reading) -> Result<Vec<u8>, Error> {
        self.wait_for(pending.event)?;
        let Pinned { address, .. } = pending.pinned;
        // SAFETY: so many bytes were read to there.
        let bytes = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), pending.size) };
        let bytes = bytes.to_vec();
        self.pool.borrow_mut().push(pending.pinned);
        Ok(bytes)
    }

    fn copy(&mut self, to: Place, from: Place, bytes: usize) -> Result<(), Error> {
        self.copy_in(0, to, from, bytes)
    }

    fn set(&mut self, to: Place, value: i32) -> Result<(), Error> {
        self.enter()?;
        // SAFETY: the place is four bytes of its buffer.
        let status =
            unsafe { (self.library().set)(self.address(to), value as u32, 1, self.lanes[0]) };
        self.check("cuMemsetD32Async", status)
    }

    fn launch(&mut self, kernel: usize, places: &[Place]) -> Result<(), Error> {
        self.launch_in(0, kernel, places)
    }

    fn finish(&mut self) -> Result<(), Error> {
        // SAFETY: the stream is valid.
        let status = unsafe { (self.library().wait_for_stream)(self.lanes[0]) };
        self.check("cuStreamSynchronize", status)?;
        self.reap(0)
    }

    fn replay(&mut self, steps: &[Step], status: Place, count: u32) -> Result<bool, Error> {
        let executable = self.capture(steps, status)?;
        for step in steps {
            if let &Step::Count { to } = step {
                self.set(to, -1)?;
            }
        }
        for _ in 0..count {
            // SAFETY: the graph uses buffers and kernels that live as long as the stream.
            let code = unsafe { (self.library().launch_graph)(executable, self.lanes[0]) };
            self.check("cuGraphLaunch", code)?;
        }
        Ok(true)
    }

    fn name(&self) -> String {
        self.driver.name.clone()
    }

    fn mark(&mut self) -> Result<bool, Error> {
        self.enter()?;
        let event = self.event_with(number::EVENT_DEFAULT, 0)?;
        self.marks.push(event);
        Ok(true)
    }

    fn take_marks(&mut self) -> Result<Vec<f64>, Error> {
        self.enter()?;
        let marks = std::mem::take(&mut self.marks);
        let mut times = Vec::with_capacity(marks.len());
        let mut outcome = Ok(());
        for &mark in &marks {
            let mut milliseconds = 0.0f32;
            // SAFETY: both events are recorded in this stream, and the later one is waited for.
            unsafe {
                let status = (self.library().wait_for_event)(mark);
                outcome = outcome.and(self.check("cuEventSynchronize", status));
                let status = (self.library().elapsed)(&mut milliseconds, marks[0], mark);
                outcome = outcome.and(self.check("cuEventElapsedTime", status));
            }
            times.push(f64::from(milliseconds) * 1e-3);
        }
        for &mark in &marks {
            // SAFETY: the event is not used behind.
            unsafe { (self.library().destroy_event)(mark) };
        }
        outcome.map(|()| times)
    }

    fn report(&self) -> String {
        let (name, kernels) = (&self.driver.name, &self.description);
        let products = self.products.iter().flatten().count();
        let blas = match (products, &self.blas) {
            (0, _) => String::new(),
            (_, Some(_)) => format!(", {products} products by cuBLAS"),
            (_, None) => ", no cuBLAS for large products".to_owned(),
        };
        format!(
            "{kernels} on {name}, made for {}{blas}\n",
            self.driver.processor()
        )
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let library = self.driver.library.clone();
        // SAFETY: all that was made is released once, after everything in the stream is done.
        unsafe {
            (library.set_context)(self.driver.context);
            for &lane in &self.lanes {
                (library.wait_for_stream)(lane);
            }
            for (event, pinned) in self.writes.drain(..) {
                (library.destroy_event)(event);
                (library.free_pinned)(pinned.address);
            }
            for pinned in self.pool.borrow_mut().drain(..) {
                (library.free_pinned)(pinned.address);
            }
            for mark in self.marks.drain(..) {
                (library.destroy_event)(mark);
            }
            for &executable in self.captured.values() {
                (library.destroy_executable)(executable);
            }
            // The library's state goes before its stream and memory.
            self.blas = None;
            for &buffer in self.buffers.iter().chain(&self.workspaces) {
                (library.free)(buffer);
            }
            for &lane in &self.lanes {
                (library.destroy_stream)(lane);
            }
            if !self.module.is_null() {
                (library.unload_module)(self.module);
            }
        }
    }
}
