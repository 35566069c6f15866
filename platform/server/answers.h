// The few shapes in which the server answers.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "base/result.h"
#include "http/message.h"
#include "server/router.h"

namespace muster::server {

http::Response json_answer(int status, std::string body);

/// RFC 9457 problem details with the status of the error's code.
http::Response problem(const base::Error& error);
/// The same with a status that says more than the code: 401, 405, 415, 429.
http::Response problem(const base::Error& error, int status);

/// 204: done, and there is nothing to say about it.
http::Response nothing_more();

/// What a handler answers that knows its answer at once; an error is answered with its problem.
using Answer = base::Result<http::Response>;
http::Response answered(Answer answer);

/// The handler of a route that is answered at once.
RouteHandler at_once(std::function<Answer(const Call&)> answer);

}  // namespace muster::server
