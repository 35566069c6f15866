#include "http/head.h"

#include <array>
#include <utility>

#include "http/url.h"

namespace muster::http {

namespace {

/// A line break in a value would start another header, so it is removed.
void append_header(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  for (const char letter : value) {
    const bool control = static_cast<unsigned char>(letter) < 0x20;
    out += control ? ' ' : letter;
  }
  out += "\r\n";
}

void append_headers(std::string& out, const Headers& headers) {
  for (const auto& [name, value] : headers) append_header(out, name, value);
}

}  // namespace

bool may_have_body(int status) {
  return status != 204 && status != 304;
}

std::string request_head(const Request& request, std::string_view host) {
  std::string head = request.method + " " + format_target(request.path, request.query);
  head += " HTTP/1.1\r\n";
  append_header(head, "host", host);
  if (!request.body.empty())
    append_header(head, "content-length", std::to_string(request.body.size()));
  append_headers(head, request.headers);
  return head + "\r\n";
}

std::string request_head(std::string_view method, std::string_view target, const Headers& headers,
                         std::string_view host) {
  std::string head;
  head += method;
  head += ' ';
  head += target;
  head += " HTTP/1.1\r\n";
  append_header(head, "host", host);
  append_headers(head, headers);
  return head + "\r\n";
}

std::string response_head(const Response& response, Framing framing, bool keep_alive) {
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
  head += reason_phrase(response.status);
  head += "\r\n";
  if (may_have_body(response.status)) {
    if (!response.content_type.empty()) append_header(head, "content-type", response.content_type);
    if (framing == Framing::kChunked) append_header(head, "transfer-encoding", "chunked");
    if (framing == Framing::kLength) {
      append_header(head, "content-length", std::to_string(response.body.size()));
    }
  }
  if (!keep_alive) append_header(head, "connection", "close");
  append_headers(head, response.headers);
  return head + "\r\n";
}

Response plain_problem(int status, const std::string& detail) {
  return {.status = status,
          .content_type = "application/problem+json",
          .body = R"({"type":"about:blank","title":")" + std::string(reason_phrase(status)) +
                  R"(","status":)" + std::to_string(status) + R"(,"detail":")" + detail + "\"}"};
}

std::string_view reason_phrase(int status) {
  static constexpr std::array<std::pair<int, std::string_view>, 33> kPhrases{{
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {206, "Partial Content"},
      {303, "See Other"},
      {304, "Not Modified"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {411, "Length Required"},
      {412, "Precondition Failed"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {416, "Range Not Satisfiable"},
      {421, "Misdirected Request"},
      {422, "Unprocessable Content"},
      {426, "Upgrade Required"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {507, "Insufficient Storage"},
  }};
  for (const auto& [candidate, phrase] : kPhrases) {
    if (candidate == status) return phrase;
  }
  return "Unknown";
}

}  // namespace muster::http
