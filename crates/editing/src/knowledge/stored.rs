//! How knowledge is stored.

/// Values that are stored as the text they print as.
pub(super) mod as_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(in crate::knowledge) fn serialize<S: Serializer>(
        value: &impl Display,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(in crate::knowledge) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

pub(super) mod as_option {
    use cellwright_notebook::Fingerprint;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de};

    #[expect(clippy::ref_option, reason = "serde asks for this signature")]
    pub(in crate::knowledge) fn serialize<S: Serializer>(
        value: &Option<Fingerprint>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(|value| value.to_string()).serialize(to)
    }

    pub(in crate::knowledge) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Fingerprint>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(de::Error::custom)).transpose()
    }
}

pub(super) mod as_texts {
    use cellwright_notebook::Fingerprint;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(in crate::knowledge) fn serialize<S: Serializer>(
        values: &[Fingerprint],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(values.iter().map(ToString::to_string))
    }

    pub(in crate::knowledge) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Fingerprint>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| text.parse().map_err(de::Error::custom)).collect()
    }
}

pub(super) mod as_versions {
    use std::collections::BTreeMap;

    use cellwright_notebook::Fingerprint;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(in crate::knowledge) fn serialize<S: Serializer>(
        values: &BTreeMap<String, Fingerprint>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_map(values.iter().map(|(id, version)| (id, version.to_string())))
    }

    pub(in crate::knowledge) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<String, Fingerprint>, D::Error> {
        let texts = BTreeMap::<String, String>::deserialize(from)?;
        let parsed = |(id, text): (String, String)| Ok((id, text.parse().map_err(de::Error::custom)?));
        texts.into_iter().map(parsed).collect()
    }
}
