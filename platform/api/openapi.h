// The contract of the HTTP API, as the server hands it out: OpenAPI 3.1, kept beside the code in
// openapi_base.json, completed with the schemas of the tables of fields by the build, and compiled
// in. openapi_routes_test holds it against the routes, and a contract test holds the server against
// it.
//
// Thread-safe (no state).
#pragma once

#include <string_view>

namespace muster::api {

/// The document, JSON.
std::string_view openapi_document();

}  // namespace muster::api
