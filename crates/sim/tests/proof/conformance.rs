//! The conformance suite on every database.

macro_rules! tests {
    ($($name:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            baton_sim::conformance::check(stringify!($name)).await;
        }
    )*};
}

baton_sim::for_each_case!(tests);
