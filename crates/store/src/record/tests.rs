//! The bytes of each record, as they are for good. Where one of these tests fails, files that are out there can no
//! longer be read: what is to be different belongs in a new version of the records instead.

use std::fmt::Debug;

use bincode::{Decode, Encode};
use expect_test::{Expect, expect};

use super::v3::{
    Checkpoint, Interned, Meta, Metadata, Name, Object, PartId, Presence, Row, Signature, Slice,
    SliceMeta, Template, Touched, UndoneRows,
};
use super::{DECODE_BYTES_MAX, VERSION, decode, encode, sample};
use crate::Error;

/// Hex, 32 bytes a line.
fn hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(32).map(|bytes| line(bytes) + "\n").collect()
}

/// A value has these bytes, they give it back, and no damage of them does harm.
fn check<T: Encode + Decode<()> + PartialEq + Debug>(value: &T, bytes: &Expect) {
    let encoded = encode(value).unwrap();
    bytes.assert_eq(&hex(&encoded));
    assert_eq!(&decode::<T>(&encoded).unwrap(), value);
    damage::<T>(&encoded);
}

fn damage<T: Encode + Decode<()> + PartialEq + Debug>(bytes: &[u8]) {
    for length in 0..bytes.len() {
        assert!(decode::<T>(&bytes[..length]).is_err(), "{length} bytes are enough");
    }
    let longer = [bytes, &[0]].concat();
    let error = decode::<T>(&longer).unwrap_err().to_string();
    assert!(error.contains("1 bytes are left over"), "{error}");
    for at in 0..bytes.len() {
        let mut changed = bytes.to_vec();
        for by in 1..=u8::MAX {
            changed[at] = bytes[at].wrapping_add(by);
            let decoded = decode::<T>(&changed);
            if at == 0 {
                let error = decoded.unwrap_err().to_string();
                let told = format!("its version is {}, not {VERSION}", changed[0]);
                assert!(error.contains(&told), "{error}");
            } else if let Ok(value) = decoded {
                stable(&value);
            }
        }
        // A number in place of another that promises more than any record has.
        for huge in [b"\xfc\xff\xff\xff\xff".as_slice(), b"\xfd\xff\xff\xff\xff\xff\xff\xff\xff"] {
            let changed = [&bytes[..at], huge, &bytes[at + 1..]].concat();
            if let Ok(value) = decode::<T>(&changed) {
                stable(&value);
            }
        }
    }
}

/// Whatever can be read can be written, and read again.
fn stable<T: Encode + Decode<()> + PartialEq + Debug>(value: &T) {
    let again = decode::<T>(&encode(value).unwrap()).unwrap();
    assert_eq!(&again, value);
}

#[test]
fn object() {
    let all: Vec<Object> = sample::objects();
    let bytes = [
        expect![[r#"
            03fb2c0100fc7011010002fd00f2052a01000000010002046874747050010364
            6e73fbb41400000102000a6000ff01fd000102030405060708090a0b0c0dfe01
            021919fbea0cfb5c110104656173740109636172742e73686f70010963617274
            4077657374010463617274
        "#]],
        expect![[r#"
            03fb2c0100fc7011010002fd00f2052a010000000101
        "#]],
        expect![[r#"
            03fb2c0100fc7011010002fd00f2052a0100000001060301fb2c01fc70110100
        "#]],
        expect![[r#"
            03fb2c0100fc7011010002fd00f2052a010000000102fbfb00fc000001000501
            000a0000070101fd000102030405060708090a0b0c0dfe
        "#]],
        expect![[r#"
            03fb2c0100fc7011010002fd00f2052a01000000010301027a31
        "#]],
        expect![[r#"
            03fb2c0100fc7011010002fd00f2052a010000000104010a5265706c69636153
            657407636172742d3764
        "#]],
        expect![[r#"
            03fb2c0100fc7011010002fd00f2052a01000000010501010103617070010204
            636172740474696c6c010102766d0200010561646d696e
        "#]],
        expect![[r#"
            03fb2c0100fc7011010002fd00f2052a01000000010501010103617070010204
            636172740474696c6c010102766d020000fb901f
        "#]],
        expect![[r#"
            03fb2c0100fc7011010002fd00f2052a01000000010700
        "#]],
        expect![[r#"
            03fb2c0100fc7011010002fd00f2052a01000000010701010172050002040347
            455402010103022f610105000203fbf401fb570201010203fbf501000101fcff
            64cd1d01fccdcc4c3e0afd00c817a8040000000111612e73686f702e7376632e
            6b2e74657374fb2823
        "#]],
        expect![[r#"
            03fb2c0100fc7011010002fd00f2052a01000000010800046561737408656173
            742e6f726706652e74657374
        "#]],
        expect![[r#"
            03fb2c0100fc7011010002fd00f2052a0100000001080119697420686173206e
            6f20646174612e6b756265636f6e666967
        "#]],
        expect![[r#"
            03fb2c0100fc7011010002fd00f2052a0100000000
        "#]],
        expect![[r#"
            03fb2c010103762d3102fd00f2052a0100000000
        "#]],
    ];
    assert_eq!(all.len(), bytes.len());
    for (object, bytes) in all.iter().zip(&bytes) {
        check(object, bytes);
    }
}

#[test]
fn service_before() {
    check(
        &Presence::There(sample::service()),
        &expect![[r#"
        0302020468747470500103646e73fbb41400000102000a6000ff01fd00010203
        0405060708090a0b0c0dfe01021919fbea0cfb5c110104656173740109636172
        742e73686f700109636172744077657374010463617274
    "#]],
    );
    check(
        &Presence::Unseen,
        &expect![[r#"
        0300
    "#]],
    );
    check(
        &Presence::Gone,
        &expect![[r#"
        0301
    "#]],
    );
}

#[test]
fn part() {
    check(
        &sample::part(),
        &expect![[r#"
        03fb2c0105312d322d3308656173742e6f7267
    "#]],
    );
    check(
        &sample::part_id(),
        &expect![[r#"
        0304656173740473686f7001fc70110100
    "#]],
    );
    check(
        &PartId { left: None, ..sample::part_id() },
        &expect![[r#"
        0304656173740473686f7000
    "#]],
    );
}

#[test]
fn size() {
    check(
        &sample::size(),
        &expect![[r#"
        03fbfb00fb2c01fc70110100fd00f2052a0100000009
    "#]],
    );
}

#[test]
fn template() {
    check::<Template>(
        &sample::template(),
        &expect![[r#"
            03fb2c01000473686f7001036170700463617274010a5265706c696361536574
            07636172742d376408636172742d37642d056361727473020468747470fb901f
            01fb187903646e7335000101191a01fbd711fbd8110101fb2f1001fb5f1001fb
            5e10010d7370696666653a2f2f73686f7009636172742e73686f70
        "#]],
    );
}

#[test]
fn metadata() {
    check::<Metadata>(
        &sample::metadata(),
        &expect![[r#"
            03010473686f7001076c696e6b657264010a5265706c69636153657407636172
            742d37640563617274730102376408636172742d37642d0101191a01fbea0cfb
            eb0c01fbd711fbd8110101fb2f100001fb5e10010d7370696666653a2f2f7368
            6f7009636172742e73686f70
        "#]],
    );
}

#[test]
fn slice() {
    check::<Slice>(
        &sample::slice(),
        &expect![[r#"
            031000000273686f7000636172742d616263fc7111010001fbf40101fcd00101
            0008636172742d37642d027b0a000007fbfc000278390473686f700663617274
            2d30fc701101000203fb9001000a000008
        "#]],
    );
}

#[test]
fn slice_meta() {
    check::<SliceMeta>(
        &sample::slice_meta(),
        &expect![[r#"
            030102046874747001fb901f03646e73000104776573740109636172742e7368
            6f70010c676174652e6c696e6b657264
        "#]],
    );
}

#[test]
fn row_with_a_suffix() {
    check::<Row>(
        &sample::row(Name::Suffix("x9".to_owned())),
        &expect![[r#"
            030201027839fb2c01fb2d01fcd00101000106636172742d30fc701101000203
            fb9001fb030102000a00000701fcd10101000106636172742d300203fb900101
            fd000102030405060708090a0b0c0dfe02fcd00101000106636172742d300203
            fb9001
        "#]],
    );
}

#[test]
fn row_with_a_whole_name() {
    check::<Row>(
        &sample::row(Name::Whole("vm".to_owned())),
        &expect![[r#"
            03020002766dfb2c01fb2d01fcd00101000106636172742d30fc701101000203
            fb9001fb030102000a00000701fcd10101000106636172742d300203fb900101
            fd000102030405060708090a0b0c0dfe02fcd00101000106636172742d300203
            fb9001
        "#]],
    );
}

#[test]
fn signature() {
    check::<Signature>(
        &sample::signature(),
        &expect![[r#"
            030201fcd00101000203fb9001040500
        "#]],
    );
}

#[test]
fn undone_rows() {
    check::<UndoneRows>(
        &sample::undone_rows(),
        &expect![[r#"
            0302fb9001fbfc000201027839fb2c01fb2d01fcd00101000106636172742d30
            fc701101000203fb9001fb030102000a00000701fcd10101000106636172742d
            300203fb900101fd000102030405060708090a0b0c0dfe02fcd0010100010663
            6172742d300203fb9001fb9101fc70110100020002766dfb2c01fb2d01fcd001
            01000106636172742d30fc701101000203fb9001fb030102000a00000701fcd1
            0101000106636172742d300203fb900101fd000102030405060708090a0b0c0d
            fe02fcd00101000106636172742d300203fb9001
        "#]],
    );
}

#[test]
fn checkpoint() {
    check::<Checkpoint>(
        &sample::checkpoint(),
        &expect![[r#"
            03053730303030fd0068e5cf8b010000
        "#]],
    );
}

#[test]
fn touched() {
    check::<Touched>(
        &sample::touched(),
        &expect![[r#"
            030201fbf40103fb2c01fd0068e5cf8b010000
        "#]],
    );
}

#[test]
fn interned() {
    check::<Interned>(
        &sample::interned(),
        &expect![[r#"
            03fcd001010009fdefcdab896745230104020161ff
        "#]],
    );
}

#[test]
fn meta() {
    check::<Meta>(
        &sample::meta(),
        &expect![[r#"
            03fc70110100fb60eaf0f1f2f3f4f5f6f7f8f9fafbfb00fbfc00fbfd00fbfe00
            fbff00010840fb0002fb0010fb0080fc00000400fc00002000fc00000001fc00
            000008fc00000040fd0000000002000000fd0000000010000000fd0000000080
            000000fd0000000000040000fd0000000000200000fd00f2052a01000000fbfb
            00fc00000100fd0068e5cf8b010000fc70110100fc404b4c00
        "#]],
    );
}

#[test]
fn text() {
    check::<String>(
        &"z1".to_owned(),
        &expect![[r#"
            03027a31
        "#]],
    );
}

#[test]
fn a_length_beyond_the_limit_is_refused_before_memory_is_asked_for() {
    // Were it not, these would fail for want of bytes, after the memory for them was there.
    let long = u32::try_from(DECODE_BYTES_MAX + 1).unwrap().to_le_bytes();
    let promise = |before: &[u8]| [&[VERSION], before, &[0xfc], &long].concat();
    let refused = |error: Result<(), Error>| {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("LimitExceeded"), "{error}");
    };
    refused(decode::<Checkpoint>(&promise(&[])).map(drop));
    refused(decode::<Interned>(&promise(&[1, 1, 1])).map(drop));
    refused(decode::<Signature>(&promise(&[])).map(drop));
    refused(decode::<UndoneRows>(&promise(&[])).map(drop));
    refused(decode::<Touched>(&promise(&[])).map(drop));
    refused(decode::<Slice>(&promise(&[0, 0, 0, 0, 0, 0])).map(drop));
    // What is within it is missing, and that is said.
    let short = [&[VERSION, 0xfc], 1_000_u32.to_le_bytes().as_slice()].concat();
    let error = decode::<Checkpoint>(&short).unwrap_err().to_string();
    assert!(error.contains("UnexpectedEnd"), "{error}");
}

#[test]
fn the_largest_slice_fits_the_limit() {
    let mut slice = sample::slice();
    let mut endpoint = slice.endpoints[0].clone();
    let name = "n".repeat(model::limits::NAME_BYTES_MAX);
    endpoint.name.clone_from(&name);
    endpoint.namespace.clone_from(&name);
    endpoint.hostname = Some(name);
    endpoint.hints = (0..100).collect();
    slice.endpoints = vec![endpoint; model::limits::SLICE_ENDPOINTS_MAX];
    stable(&slice);
}
