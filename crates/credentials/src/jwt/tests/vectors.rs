//! Tokens and keys of other programs, for tests: signed with OpenSSL, or from the standards.

/// The modulus of an RSA key of 2,048 bits; the exponent is 65537.
pub const RSA_MODULUS: &str = "siUK9Rgl_An3N0i8aOFEu_1ouB4piIYW18wsgEKAhi4w694u6et_SLAFO3kypPYCVR7AnXjxi6b3_xW_-\
    tTjSNvq6aL77edBinomiDyyQ9iesZjknc_hkdYEfCfyP0qxg4APNgkDX0fXBjQrGjjNxfj59GK-8A5b1UyLXtJescCX-\
    jV4OKrEI-bgFtf6ToN659kOMYVq8YYnZbBhlUQovR8n3FLFsHajbCJmH4QJ9KUd1NFi6HQww4CocLMvrlUK2kfMl_RjCLOgT8_Ra\
    bCTfrQ4bvADljfwN7fIUzN7SOFk68UYfvXh9mg0IhX2JbJ3001dgYa4Dok86-3vjhhIJw";

/// Signed with that key, good until ten minutes after 1,800,000,000.
pub const RS256_TOKEN: &str = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6InIyMDQ4In0.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUub3Jn\
    IiwiYXVkIjoic2hvcC1hcGkiLCJzdWIiOiJhZGEiLCJleHAiOjE4MDAwMDA2MDAsInJvbGVzIjpbIkFETUlOIl19.AvEAUigkRTD\
    Htg-nYFYp46ya8byCaJHenYD9ghXZVf_jNPGyFEEEX2H3iOxsWpqJIU6J-PLJKTlLA0-3Q3Sqo7ByBYcHWU4krF-q_kAS3s6WxBL\
    FeK2qHYbh54XqdwPOIZ3uNsKPegFt4iB38UiUs4xozQLlMyoXvPjbd1qjDjdsbtXjkXVCTD9hFGVW0KJm6Nje04g7BMF5kPQfRji\
    zQDsatqbdGj5lxUX0A_4p75QJqIFh9FVd7e3Gcynw3YIIig3IM_LVafC55gaP7jSXGpjccT9WARIXP8U31eWT7zj2FE6OXdLgBtY\
    wdoc_z_CeFQBRv8ncyy5aBRLd0QBClw";

/// The same with the other padding.
pub const PS256_TOKEN: &str = "eyJhbGciOiJQUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6InIyMDQ4In0.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUub3Jn\
    IiwiYXVkIjoic2hvcC1hcGkiLCJzdWIiOiJhZGEiLCJleHAiOjE4MDAwMDA2MDAsInJvbGVzIjpbIkFETUlOIl19.HT4h9RgUpQ7\
    lo2wvAnwC5WcfUh9CGFH3LJ5nQveYNCCjYR-\
    L4YQxI3X3Nv1c26fLK94ozqol9ZX8BuL4GqA4NvwAbtn9b1GJbEQtC6KZlNxLN56rRhX46a4J2fusvXsO5WrUDnJMIv_ABuvXEZ3\
    wjQd1-97F-J2rlpZqKt_rllA-ExnLmfnUFgXf1lK7Akzmm7Nlzwt7ZIqx4rbKXBtBYTs1cDKAZLCP4ATffasLpEhP7VFMC_AIqnu\
    wJXkYqRKeQe0OmjL3i7hw3ecdks5xIIrwyGvQ18peUPXpZ2mSt615BaNzYdFaJO9XnEwYH8nOdBsIvtV4whEVx3BRkwBbHA";

/// The modulus of an RSA key of 1,024 bits.
pub const WEAK_MODULUS: &str = "5bq2TV_FYd6W4d93YeLMNsr0I2dMPDAysZswKCIa3nKRJP_iratRLdtrAnwIT_RWQekq2ijJfxut2z_eBZyqaVDqHs-MYHo81Qi-\
    PfDOpEcX0SkMqw2I3jOyLz4a8CWtGOK_jVYPsT4hHylYUT9hCQdZl9JrFuIZS5iR-cHbxv0";

/// Signed with the weak key.
pub const WEAK_TOKEN: &str = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6InIxMDI0In0.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUub3Jn\
    IiwiYXVkIjoic2hvcC1hcGkiLCJzdWIiOiJhZGEiLCJleHAiOjE4MDAwMDA2MDAsInJvbGVzIjpbIkFETUlOIl19.FOOVCfaFjqt\
    YuGSGHQFhE4262A_-RkP1IO_lyfLHwrJEXdmFexdfe6fJ0ulNAE1D8ZXugj8X71VCa4s7cGv7utedbF0gZ87fK5NOecyHcvFVqIh\
    c3Sns19DI3CyLKxx_7PjDWngByhd3dNGYTD4diL3NRbROKcESvyWU21q0VL0";

/// RFC 7515, appendix A.1.
pub const RFC_SECRET: &str =
    "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
pub const RFC_HS256: &str = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\
    eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
    dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// RFC 7515, appendix A.3.
pub const RFC_P256: [&str; 2] =
    ["f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"];
pub const RFC_ES256: &str = "eyJhbGciOiJFUzI1NiJ9.\
    eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
    DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";

/// RFC 8037, appendix A.4.
pub const RFC_ED25519: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
pub const RFC_EDDSA: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
    hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
