#include "server/answers.h"

#include "api/routes.h"
#include "api/wire.h"

namespace muster::server {

http::Response json_answer(int status, std::string body) {
  return {.status = status, .body = std::move(body)};
}

http::Response problem(const base::Error& error) {
  return problem(error, api::http_status_of(error.code));
}

http::Response problem(const base::Error& error, int status) {
  return {.status = status,
          .content_type = std::string(api::kProblemType),
          .body = api::problem_to_json(error, status)};
}

http::Response nothing_more() {
  return {.status = 204};
}

http::Response answered(Answer answer) {
  return answer ? *std::move(answer) : problem(answer.error());
}

RouteHandler at_once(std::function<Answer(const Call&)> answer) {
  return [answer = std::move(answer)](const Call& call, const http::Respond& respond) {
    respond(answered(answer(call)));
  };
}

}  // namespace muster::server
