//! Get over a real store: what streams say when objects change.

mod fixture;

mod explain;
mod flows;
mod network;
mod order;
mod oversize;
mod random;
mod streams;
