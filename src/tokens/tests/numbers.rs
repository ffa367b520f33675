//! Numbers: rows of subject, source and result.

use super::*;

#[test]
fn number_is_compared_by_value() {
    check(
        TokenKind::Number,
        &[
            ("100", "Pay 100 today", YES),
            ("100", "Pay 100.", YES),
            ("100.00", "Pay €100, please", YES),
            ("100", "Pay 100EUR", YES),
            ("100", "Pay US$100!", YES),
            ("€100", "Pay 100", YES),
            ("-5", "It was -5 or \u{2212}6 degrees", YES),
            ("-6", "It was -5 or \u{2212}6 degrees", YES),
            ("5", "It was -5 degrees", NO),
            ("1234567", "1,234,567", YES),
            ("1234567", "1.234.567", YES),
            ("1234567.5", "1.234.567,5", YES),
            ("1234567.5", "1'234'567.5", YES),
            ("1234567,5", "1 234 567,5", YES),
            ("1234567", "1\u{202f}234\u{a0}567", YES),
            ("100000", "₹1,00,000", YES),
            ("1234.5", "1234,5", YES),
            ("0.125", "0,125", YES),
            ("101", "rooms 101, 102 and 103", YES),
            ("1234", "1.234", UNDECIDED),
            ("1234", "1,234", UNDECIDED),
            ("99", "1,234", NO),
            ("1.234", "1234", UNDECIDED),
            ("1234", "1,234 or 1234", YES),
            ("100", "Оплатите 100 рублей", YES),
            ("100", "Πληρώστε 100 ευρώ", YES),
            ("100", "ادفع 100، شكرا", YES),
            ("100", "שלמו 100 שקל", YES),
            ("100", "भुगतान 100।", YES),
            ("100", "支付 100 元。", YES),
            ("100", "支付100元", NO),
            ("100", "支付 ¥100。", YES),
            ("100", "จ่าย 100 บาท", YES),
            ("100", "١٠٠", NO),
            ("100", "1١00 and 100١", NO),
            ("１００", "100", UNDECIDED),
            ("100", "A100 B-100 100x v100 item_100", NO),
            ("2024", "2024-01-05 05/01/2024 5.1.2024", NO),
            ("12", "12:30 or 1:12", NO),
            ("1.2", "v1.2 or 1.2.3", NO),
            ("5", "5-10, 1\u{2013}5, 5..10, ~5, 5+", NO),
            ("5", "5% or 5 % or 5\u{2030}", NO),
            ("5", "1/5 5/1 3*5 .5 5\u{b7}5 5\u{66b}5", NO),
            ("5", "1,2,5", NO),
            ("5", "5k 5M 5th 1e5", NO),
            ("100000", "1e5", NO),
            ("5", "5\u{200b}", NO),
            ("5", "\u{2060}5 5\u{301}", NO),
            ("500", "\u{200b}500 1\u{200b}500 1\u{200b},500", NO),
            ("234", "1 234", NO),
            ("five", "five", UNDECIDED),
            ("1,2,3", "1,2,3", UNDECIDED),
            ("100 ", "100", UNDECIDED),
            ("1e2", "100", UNDECIDED),
            ("5%", "5%", UNDECIDED),
        ],
    );
    let with = |mark, subject, source| {
        is_mentioned(TokenFormat::new(TokenKind::Number).with_decimal(mark), subject, source)
    };
    assert_eq!(with(DecimalMark::Point, "1234", "1,234"), YES);
    assert_eq!(with(DecimalMark::Point, "1.234", "1,234"), NO);
    assert_eq!(with(DecimalMark::Comma, "1234", "1.234"), YES);
    assert_eq!(with(DecimalMark::Comma, "1,234", "1,234"), YES);
    assert_eq!(with(DecimalMark::Comma, "12,5", "12.5"), UNDECIDED);
    assert_eq!(with(DecimalMark::Comma, "1234567", "1,234,567"), UNDECIDED);
    let number = "1e2".parse().unwrap();
    let subject = TokenSubject::Number(&number);
    assert_eq!(TokenFormat::new(TokenKind::Number).is_mentioned(subject, [&Value::from("100.0")]), Ok(true));
    assert!(TokenFormat::new(TokenKind::Word).is_mentioned(subject, [&Value::from("100")]).is_err());
}
