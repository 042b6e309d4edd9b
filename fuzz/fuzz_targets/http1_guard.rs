//! Arbitrary bytes in arbitrary pieces: the guard and hyper agree on every request in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trefoil_server::http1::guard::hyper_comparison::check_agreement;

fuzz_target!(|pieces: Vec<&[u8]>| {
    check_agreement(&pieces);
});
