// Writes the API's document: the routes of openapi_base.json, with the schemas of the tables of fields
// (record/schema.h).
#pragma once

#include <iosfwd>

namespace muster::api {

/// Reads the routes from `base_file` and writes the whole document to `out`. A schema that exists in
/// both is an error: a field is written down once. Returns false after an error, which is one line on
/// `errors`.
bool write_openapi(const char* base_file, std::ostream& out, std::ostream& errors);

}  // namespace muster::api
