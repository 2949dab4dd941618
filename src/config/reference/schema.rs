//! The reference as JSON Schema, for editors that complete and check the file while it is written.

use super::{Entry, Field, Reference, Shape};
use serde_json::{Map, Value, json};

impl Reference {
    /// JSON Schema, draft 2020-12.
    pub fn to_schema(&self) -> Value {
        let mut schema = object(&self.entries);
        let mut definitions = json!({
            "texts": values(&json!([{"type": "string", "minLength": 1}])),
            "values": values(&json!([{"type": "string", "minLength": 1}, {"type": "number"}, {"type": "boolean"}])),
            "absent": {
                "type": "object", "properties": {"absent": {"type": "boolean"}}, "required": ["absent"],
                "additionalProperties": false,
            },
        });
        for (name, entries) in &self.shared {
            definitions[*name] = object(entries);
            definitions[*name]["minProperties"] = 1.into();
        }
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = "tollgate.yaml".into();
        schema["$defs"] = definitions;
        schema
    }
}

/// One of these, or a list of them.
fn values(one: &Value) -> Value {
    json!({"anyOf": [{"anyOf": one}, {"type": "array", "minItems": 1, "items": {"anyOf": one}}]})
}

fn object(entries: &[Entry]) -> Value {
    let (mut properties, mut patterns, mut required) = (Map::new(), Map::new(), Vec::new());
    for Entry { key, about, shape } in entries {
        let mut value = match shape {
            Shape::Field(of) | Shape::Required(of) | Shape::Named(of) => field(of),
            // A section with nothing in it, which is null, is all defaults.
            Shape::Section(entries) => nullable(object(entries)),
            Shape::Either(of, entries) => json!({"anyOf": [field(of), object(entries)]}),
            Shape::Shared(name) => json!({"$ref": format!("#/$defs/{name}")}),
            Shape::List(entries) => json!({"type": "array", "items": object(entries)}),
        };
        value["description"] = (*about).into();
        if needed(shape) {
            required.push(*key);
        }
        match shape {
            Shape::Named(_) => patterns.insert(format!("^{}.+", key.replace('.', "\\.")), value),
            _ => properties.insert((*key).to_owned(), value),
        };
    }
    let mut schema =
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    if !patterns.is_empty() {
        schema["patternProperties"] = patterns.into();
    }
    schema
}

/// Whether a key must be there: itself, or one within it.
fn needed(shape: &Shape) -> bool {
    match shape {
        Shape::Required(_) => true,
        Shape::Section(entries) => entries.iter().any(|entry| needed(&entry.shape)),
        _ => false,
    }
}

fn nullable(mut object: Value) -> Value {
    if object["required"] == json!([]) {
        object["type"] = json!(["object", "null"]);
    }
    object
}

/// The schemas and defaults of fields are written in this crate, so that they can be read.
fn field(field: &Field) -> Value {
    let mut schema: Value = serde_json::from_str(&field.schema).unwrap_or_default();
    if field.is_default {
        schema["default"] = super::super::yaml::parse(&field.sample).map_or(Value::Null, |node| node.to_json());
    }
    schema
}
