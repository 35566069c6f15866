// The contract of the HTTP API, as the server publishes it: OpenAPI 3.1. Its base is
// openapi_base.json; the build adds the schemas of the tables of fields and compiles the document
// in. openapi_routes_test compares it with the routes, and a contract test compares the server with
// it.
//
// Thread-safe (no state).
#pragma once

#include <string_view>

namespace muster::api {

/// The document, JSON.
std::string_view openapi_document();

}  // namespace muster::api
