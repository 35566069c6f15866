// The few shapes in which the server answers.
#pragma once

#include <string>

#include "base/error.h"
#include "http/message.h"

namespace muster::server {

http::Response json_answer(int status, std::string body);

/// RFC 9457 problem details with the status of the error's code.
http::Response problem(const base::Error& error);

}  // namespace muster::server
