#include "server/answers.h"

#include "api/wire.h"

namespace muster::server {

http::Response json_answer(int status, std::string body) {
  return {.status = status, .body = std::move(body)};
}

http::Response problem(const base::Error& error) {
  return {.status = api::http_status_of(error.code),
          .content_type = "application/problem+json",
          .body = api::problem_to_json(error)};
}

}  // namespace muster::server
