//! Get over a real store: what streams say when objects change.

mod fixture;

mod flows;
mod network;
mod random;
mod streams;
