//! The SQL-like text of expressions: its meaning, and the positions of errors.

use icefield_format::expr::Expr;

/// Texts and the canonical text of their meaning.
#[test]
fn texts_and_their_meaning() {
    for (text, meaning) in [
        ("id > 5", "id > 5"),
        ("5 < id", "id > 5"),
        ("id<>-5", "id != -5"),
        ("id == +5", "id = 5"),
        ("TRUE", "TRUE"),
        ("not false", "TRUE"),
        ("b = TRUE", "b = TRUE"),
        ("true = b", "b = TRUE"),
        ("a AND b IS NULL", "!3"),
        ("a = 1 AND b = 2 OR c = 3 AND d = 4", "a = 1 AND b = 2 OR c = 3 AND d = 4"),
        ("a = 1 AND (b = 2 OR c = 3)", "a = 1 AND (b = 2 OR c = 3)"),
        ("(a = 1 OR b = 2) OR c = 3", "a = 1 OR b = 2 OR c = 3"),
        ("a = 1 OR (b = 2 OR c = 3)", "a = 1 OR (b = 2 OR c = 3)"),
        ("NOT a = 1 AND b = 2", "NOT (a = 1) AND b = 2"),
        ("NOT NOT a = 1", "a = 1"),
        ("a is not null", "a IS NOT NULL"),
        ("a IS NAN OR isnan(b)", "a IS NAN OR b IS NAN"),
        ("a IN (1, 2.5, 'x')", "a IN (1, 2.5, 'x')"),
        ("a NOT IN (1)", "a NOT IN (1)"),
        ("a BETWEEN 1 AND 2 AND b = 3", "a >= 1 AND a <= 2 AND b = 3"),
        ("a NOT BETWEEN 1 AND 2", "a < 1 OR a > 2"),
        ("a LIKE 'ab%'", "a LIKE 'ab%'"),
        (r"a LIKE 'a\%\_\\b%'", r"a LIKE 'a\%\_\\b%'"),
        ("a LIKE 'ab'", "a = 'ab'"),
        ("a NOT LIKE 'ab'", "a != 'ab'"),
        ("a LIKE '%'", "a LIKE '%'"),
        ("a LIKE 'a%b'", "!8"),
        ("a LIKE 'a_'", "!8"),
        ("a = 'it''s'", "a = 'it''s'"),
        (r#""odd ""name""" = 1"#, r#""odd ""name""" = 1"#),
        ("`a b`.c = 1", r#""a b.c" = 1"#),
        ("a.b.c = 1", "a.b.c = 1"),
        ("\"in\" = 1", "\"in\" = 1"),
        ("ünï = 1", "ünï = 1"),
        ("date = DATE '2020-01-01'", "date = DATE '2020-01-01'"),
        ("DATE '2020-02-30' = a", "!1"),
        ("a = TIMESTAMP '2020-01-01 10:00:00'", "a = TIMESTAMP '2020-01-01T10:00:00'"),
        ("a = TIMESTAMP '2020-01-01'", "a = TIMESTAMP '2020-01-01T00:00:00'"),
        ("a = TIMESTAMP '2020-01-01T10:00:00+01:00'", "a = TIMESTAMPTZ '2020-01-01T09:00:00+00:00'"),
        ("a = TIMESTAMP '2020-01-01 10:00:00.123456789'", "a = TIMESTAMP_NS '2020-01-01T10:00:00.123456789'"),
        ("a = UUID '00112233-4455-6677-8899-aabbccddeeff'", "a = UUID '00112233-4455-6677-8899-aabbccddeeff'"),
        ("a = X'00Ff'", "a = X'00ff'"),
        ("a = CAST('1.50' AS DECIMAL(9, 2))", "a = DECIMAL '1.50'"),
        ("a = CAST(1.5 AS FLOAT)", "a = FLOAT '1.5'"),
        ("a = 1e3", "a = 1000.0"),
        ("a = 123456789012345678901234567890", "a = DECIMAL '123456789012345678901234567890'"),
        ("a = 0.1234567890123456789", "a = DECIMAL '0.1234567890123456789'"),
        (
            "st_intersects(g, st_makeenvelope(-1, 2.5, 1e300, 4))",
            "st_intersects(g, st_makeenvelope(-1.0, 2.5, 1e300, 4.0))",
        ),
        (
            "ST_Intersects(ST_PolygonFromEnvelope(1, 2, 3, 4), s.g) OR a = 1",
            "st_intersects(s.g, st_makeenvelope(1.0, 2.0, 3.0, 4.0)) OR a = 1",
        ),
        (
            "NOT st_disjoint(g, st_makeenvelope(1, 2, 3, 4))",
            "NOT (st_disjoint(g, st_makeenvelope(1.0, 2.0, 3.0, 4.0)))",
        ),
        ("st_intersects = 1", "st_intersects = 1"),
        ("st_intersects(g, h)", "!18"),
        ("st_intersects(g, st_makeenvelope(3, 2, 1, 4))", "!18"),
        ("st_intersects(g, st_makeenvelope('x', 2, 1, 4))", "!34"),
        ("bucket(16, id) = 3", "bucket(16, id) = 3"),
        ("3 = bucket(id, 16)", "bucket(16, id) = 3"),
        ("days(ts) >= DATE '2020-01-01'", "day(ts) >= DATE '2020-01-01'"),
        ("year(d) = '2013'", "year(d) = '2013'"),
        ("'2013' <= YEARS(d)", "year(d) >= '2013'"),
        ("year(d) = INT '43'", "year(d) = INT '43'"),
        ("year(d) = LONG '43'", "year(d) = '2013'"),
        ("year(d) IN ('-0001', '2013', '+12013')", "year(d) IN (LONG '-1971', '2013', LONG '10043')"),
        ("year(d) BETWEEN '1969' AND '2013'", "year(d) >= '1969' AND year(d) <= '2013'"),
        ("month(d) != '2013-02'", "month(d) != '2013-02'"),
        ("hour(ts) < '1969-12-31-23'", "hour(ts) < '1969-12-31-23'"),
        ("hour(ts) < '2013-02-05T10'", "hour(ts) < '2013-02-05-10'"),
        ("day(d) = '2013-02-05'", "day(d) = '2013-02-05'"),
        ("day(d) = CAST('2013-02-05' AS DATE)", "day(d) = DATE '2013-02-05'"),
        ("day(d) = INT '5'", "day(d) = INT '5'"),
        ("year(d) IS NULL", "year(d) IS NULL"),
        ("year(d) = 2013", "!11"),
        ("2013 != year(d)", "!1"),
        ("year(d) = 43", "!11"),
        ("year(d) = -1", "!11"),
        ("year(d) = 2013.0", "!11"),
        ("year(d) = CAST(2013 AS INT)", "!11"),
        ("year(d) = CAST('2013' AS BIGINT)", "!11"),
        ("year(d) = 'MMXIII'", "!11"),
        ("year(d) = '2013-01'", "!11"),
        ("year(d) = DATE '2013-01-01'", "!11"),
        ("year(d) IN ('2013', 2014)", "!21"),
        ("NOT years(d) BETWEEN 2013 AND '2014'", "!22"),
        ("month(d) >= 2", "!13"),
        ("day(d) < 5", "!10"),
        ("hour(ts) = 23", "!12"),
        ("hour(ts) = '2013-02-05-24'", "!12"),
        ("truncate(2, a.b) IN ('ab', 'cd')", "truncate(2, a.b) IN ('ab', 'cd')"),
        ("frobnicate(id) = 3", "!1"),
        ("v:a.b[0]::long > 5", "v:a.b[0]::long > 5"),
        ("st.v : a['b c'] :: STRING = 'x'", "st.v:a.\"b c\"::string = 'x'"),
        ("5 <= v:[2].in::decimal(9,2)", "v:[2].\"in\"::decimal(9, 2) >= 5"),
        ("v::fixed[4] IS NULL", "v::fixed[4] IS NULL"),
        ("v:a = 1", "!5"),
        ("v:::long = 1", "!4"),
        ("v:a[-1]::long = 1", "!5"),
        ("v:a[0::long = 1", "!6"),
        ("v:a::nothing = 1", "!4"),
        ("v:a::geometry = 1", "!4"),
        ("bucket(0, id) = 3", "!1"),
        ("a = NULL", "!5"),
        ("a = b", "!1"),
        ("1 = 1", "!1"),
        ("a =", "!4"),
        ("a = 1 b", "!7"),
        ("(a = 1", "!7"),
        ("a = 'x", "!5"),
        ("a ? 1", "!3"),
        ("é = 'x", "!5"),
        ("", "!1"),
        ("a IN (1, )", "!10"),
        ("and = 1", "!1"),
    ] {
        let got = match Expr::parse(text) {
            Ok(expr) => expr.to_string(),
            Err(error) => {
                let message = error.to_string();
                let place = message.strip_prefix("expression at character ").expect(&message);
                format!("!{}", place.split(':').next().unwrap())
            }
        };
        // the end of the text is the character after the last
        assert_eq!(got, meaning, "{text}");
    }
}

/// The hints after `: ` in errors about text that is valid SQL but not valid here.
#[test]
fn errors_say_what_to_write() {
    for (text, advice) in [
        ("year(d) = 2013", "d >= '2013-01-01' AND d < '2014-01-01', or year(d) = '2013'"),
        ("year(\"a b\".d) = 43", "year(\"a b.d\") = '0043'"),
        ("month(d) = 2", "month(d) = '2013-02'"),
        ("hour(ts) = 'noon'", "hour(ts) = '2013-02-05-10'"),
        ("carrier=UA", "if UA is a text, write it in single quotes: 'UA'"),
        ("day = 2013-01-05", "single quotes: '2013-01-05'"),
        ("(ts > 2013-01-05T10:00:00)", "single quotes: '2013-01-05T10:00:00'"),
        ("ts BETWEEN 10:30 AND 11:30", "single quotes: '10:30'"),
        ("b", "if b is a boolean, write b = true"),
        ("NOT b AND c = 1", "write b = true"),
    ] {
        let message = Expr::parse(text).unwrap_err().to_string();
        assert!(message.contains(advice), "{text}: {message}");
    }
}

#[test]
fn nesting_is_bounded() {
    for opening in ["(", "NOT ", "NOT ("] {
        let error = Expr::parse(&opening.repeat(100_000)).unwrap_err().to_string();
        assert!(error.contains("deeper"), "{error}");
    }
}
