#include "http/request_reader.h"

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

#include "http/beast_headers.h"
#include "http/url.h"

namespace muster::http {

namespace beast_http = boost::beast::http;

namespace {

/// Longer than any path of the API with a command to run in its query.
constexpr size_t kLongestTarget = 32 << 10;

}  // namespace

struct RequestReader::Parser : beast_http::request_parser<beast_http::string_body> {
  explicit Parser(const Limits& limits) {
    header_limit(static_cast<std::uint32_t>(limits.header_bytes));
    body_limit(limits.body_bytes);
    eager(true);
  }
};

RequestReader::RequestReader(const Limits& limits)
    : limits_(limits), parser_(std::make_unique<Parser>(limits)) {}

RequestReader::~RequestReader() = default;

RequestReader::Progress RequestReader::put(std::string_view bytes) {
  // Beast wants a head in one piece, so what it leaves is kept until the rest has come.
  waiting_ += bytes;
  if (waiting_.empty()) return Progress::kMore;
  in_request_ = true;
  boost::system::error_code error;
  const size_t taken = parser_->put(boost::asio::buffer(waiting_), error);
  waiting_.erase(0, taken);
  if (error == beast_http::error::header_limit) {
    return fail(431,
                "the headers are larger than " + std::to_string(limits_.header_bytes) + " bytes");
  }
  if (error == beast_http::error::body_limit || error == beast_http::error::buffer_overflow) {
    return fail(413, "the body is larger than " + std::to_string(limits_.body_bytes) + " bytes");
  }
  if (error && error != beast_http::error::need_more) {
    return fail(400, "the request is no HTTP/1.1: " + error.message());
  }
  if (!parser_->is_done()) return Progress::kMore;
  const auto target = parser_->get().target();
  if (target.size() > kLongestTarget) {
    return fail(414,
                "the request's target is longer than " + std::to_string(kLongestTarget) + " bytes");
  }
  target_ = parse_target(target);
  if (target_) return Progress::kDone;
  return fail(400,
              "the request's target is malformed: it has to be a path, without encoded slashes, "
              "dot segments and control characters");
}

ReadRequest RequestReader::take() {
  auto message = parser_->release();
  parser_ = std::make_unique<Parser>(limits_);
  in_request_ = false;
  told_to_continue_ = false;

  const bool current = message.version() >= 11;
  ReadRequest read{.keep_alive = current && message.keep_alive(),
                   .head_only = message.method() == beast_http::verb::head,
                   .may_chunk = current};
  read.request.method = read.head_only ? "GET" : std::string(message.method_string());
  read.request.headers = headers_of(message);
  read.request.body = std::move(message.body());
  read.request.path = std::move(target_->path);
  read.request.query = std::move(target_->query);
  return read;
}

bool RequestReader::wants_continue() {
  if (told_to_continue_ || !parser_->is_header_done() || parser_->is_done()) return false;
  told_to_continue_ =
      boost::beast::iequals(parser_->get()[beast_http::field::expect], "100-continue");
  return told_to_continue_;
}

RequestReader::Progress RequestReader::fail(int status, std::string what) {
  fault_ = {.status = status, .what = std::move(what)};
  return Progress::kFault;
}

}  // namespace muster::http
