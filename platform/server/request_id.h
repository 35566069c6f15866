// What a request is called in the log, in its answer and in the audit log.
//
// Pure.
#pragma once

#include <string>

#include "base/random.h"
#include "http/message.h"

namespace muster::server {

/// The one that the client gave it (x-request-id), where that is 1 to 64 of A-Z, a-z, 0-9, '.', '_'
/// and '-': it goes into logs and headers. Else a fresh one.
std::string request_id(const http::Request& request, base::RandomSource& random);

}  // namespace muster::server
