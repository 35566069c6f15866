// The query parameters of each route, which the API's document declares: the router refuses every
// other parameter, so that a typo such as ?dry-run=true does not start a job.
//
// Thread-safe: the document is read once, for the first request with a query.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "http/url.h"

namespace muster::server {

/// A fault for each parameter of `query` that the route does not have, and for each parameter with a
/// single value that is repeated. `path`: of the route, as in "/v1/jobs/{name}".
std::vector<base::Fault> faults_of_parameters(const std::string& method, const std::string& path,
                                              const http::Query& query);

}  // namespace muster::server
