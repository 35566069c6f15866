#include "http/message_reader.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/optional.hpp>
#include <limits>
#include <utility>

#include "http/beast_headers.h"
#include "http/url.h"

namespace muster::http {

namespace beast_http = boost::beast::http;

using base::Error;
using base::ErrorCode;

namespace {

/// Longer than any path of the API, including a command to run in the query.
constexpr size_t kLongestTarget = 32 << 10;

/// Longer than any method of the API. The methods of WebDAV fit, too.
constexpr size_t kLongestMethod = 16;

/// The limit for a chunk's size line with extensions, and for all trailers, which the parser needs
/// in one piece.
constexpr size_t kLongestChunkLine = 8 << 10;

/// The part of `bytes` that belongs to the head; `bytes` begin with or after the start line.
std::string_view head_part(std::string_view bytes) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  if (bytes.starts_with("\r\n")) return {};
  return bytes.substr(0, bytes.find(kEnd));
}

/// Whether a header continues on a second line (obs-fold), which the parser would join.
bool has_folded_header(std::string_view head) {
  const bool first_is_folded = head.starts_with(' ') || head.starts_with('\t');
  return first_is_folded || head.find("\n ") != std::string_view::npos ||
         head.find("\n\t") != std::string_view::npos;
}

/// RFC 3986, 3.2.2 and 3.2.3, letter by letter.
bool is_host(std::string_view value) {
  constexpr std::string_view kOthers = "-._~%!$&'()*+,;=:[]";
  return std::all_of(value.begin(), value.end(), [&](char letter) {
    const bool alphanumeric = (letter >= '0' && letter <= '9') ||
                              (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    return alphanumeric || kOthers.find(letter) != std::string_view::npos;
  });
}

/// RFC 9112, 3.2.
std::optional<ReadFault> fault_of_host(const beast_http::fields& fields, bool current) {
  const size_t count = fields.count(beast_http::field::host);
  if (count > 1 || (count == 0 && current)) {
    return ReadFault{400, "the request has " + std::to_string(count) +
                              " Host headers; an HTTP/1.1 request has exactly one"};
  }
  if (is_host(fields[beast_http::field::host])) return std::nullopt;
  return ReadFault{400,
                   "the request's Host is malformed: it has to be a host name or an address, "
                   "with or without a port"};
}

/// RFC 9112, 6.1. For an unknown coding the parser assumes an empty body, so that the body would be
/// read as the next request.
std::optional<ReadFault> fault_of_coding(const beast_http::fields& fields, bool current) {
  if (fields.count(beast_http::field::content_length) > 1) {
    return ReadFault{400, "the request has several Content-Length headers"};
  }
  const size_t count = fields.count(beast_http::field::transfer_encoding);
  if (count == 0) return std::nullopt;
  const bool chunked =
      boost::beast::iequals(fields[beast_http::field::transfer_encoding], "chunked");
  if (current && count == 1 && chunked) return std::nullopt;
  return ReadFault{400,
                   "the request's Transfer-Encoding is not supported: an HTTP/1.1 request may "
                   "have 'chunked', once"};
}

}  // namespace

struct RequestReader::Parser : beast_http::request_parser<beast_http::string_body> {
  explicit Parser(const Limits& limits) {
    header_limit(static_cast<std::uint32_t>(limits.header_bytes));
    body_limit(limits.body_bytes);
  }
};

RequestReader::RequestReader(const Limits& limits)
    : limits_(limits), parser_(std::make_unique<Parser>(limits)) {}

RequestReader::~RequestReader() = default;

RequestReader::Progress RequestReader::put(std::string_view bytes) {
  // Beast requires a head in one piece, so an incomplete head is kept until the rest arrives.
  waiting_ += bytes;
  if (waiting_.empty()) return Progress::kMore;
  in_request_ = true;
  if (auto fault = parse()) return fail(fault->status, std::move(fault->what));
  if (!head_read_ && parser_->is_header_done()) {
    if (auto fault = read_head()) return fail(fault->status, std::move(fault->what));
    head_read_ = true;
    // Not later: after the body, the parser adds the trailers to the headers.
    parser_->eager(true);
    if (!parser_->is_done() && !waiting_.empty()) {
      if (auto fault = parse()) return fail(fault->status, std::move(fault->what));
    }
  }
  if (parser_->is_done()) return Progress::kDone;
  if (head_read_ && waiting_.size() > kLongestChunkLine) {
    return fail(400, "the size line of a chunk, or the trailers, are longer than " +
                         std::to_string(kLongestChunkLine) + " bytes");
  }
  return Progress::kMore;
}

std::optional<ReadFault> RequestReader::parse() {
  const bool reads_head = !parser_->is_header_done();
  boost::system::error_code error;
  const size_t taken = parser_->put(boost::asio::buffer(waiting_), error);
  const bool folded =
      reads_head && has_folded_header(head_part(std::string_view(waiting_).substr(0, taken)));
  waiting_.erase(0, taken);
  if (error == beast_http::error::header_limit) {
    return ReadFault{
        431, "the headers are larger than " + std::to_string(limits_.header_bytes) + " bytes"};
  }
  if (error == beast_http::error::body_limit || error == beast_http::error::buffer_overflow) {
    return ReadFault{413,
                     "the body is larger than " + std::to_string(limits_.body_bytes) + " bytes"};
  }
  if (error && error != beast_http::error::need_more) {
    return ReadFault{400, "the request is not valid HTTP/1.1: " + error.message()};
  }
  if (folded) {
    return ReadFault{400,
                     "the request is not valid HTTP/1.1: a header is folded onto a second line"};
  }
  return std::nullopt;
}

std::optional<ReadFault> RequestReader::read_head() {
  const auto& message = parser_->get();
  const bool current = message.version() >= 11;
  if (message.method_string().size() > kLongestMethod) {
    return ReadFault{501, "the request's method is longer than " + std::to_string(kLongestMethod) +
                              " bytes; no path of this server accepts it"};
  }
  if (auto fault = fault_of_host(message, current)) return fault;
  if (auto fault = fault_of_coding(message, current)) return fault;
  const auto text = message.target();
  if (text.size() > kLongestTarget) {
    return ReadFault{
        414, "the request's target is longer than " + std::to_string(kLongestTarget) + " bytes"};
  }
  auto target = parse_target(text);
  if (!target) {
    const std::string_view path(text.data(), std::min(text.find('?'), text.size()));
    if (parse_target(path)) {
      return ReadFault{400,
                       "the request's query is malformed: after each '%' there must be the two hex "
                       "digits of a byte other than 00"};
    }
    return ReadFault{400,
                     "the request's target is malformed: it has to be a path, without encoded "
                     "slashes, dot segments and control characters"};
  }
  head_ = {.method = std::string(message.method_string()),
           .path = std::move(target->path),
           .query = std::move(target->query),
           .headers = headers_of(message)};
  if (head_.method == "HEAD") head_.method = "GET";
  return std::nullopt;
}

ReadRequest RequestReader::take() {
  auto message = parser_->release();
  parser_ = std::make_unique<Parser>(limits_);
  in_request_ = false;
  continue_sent_ = false;
  head_read_ = false;
  head_taken_ = false;

  const bool current = message.version() >= 11;
  ReadRequest read{.request = std::exchange(head_, {}),
                   .keep_alive = current && message.keep_alive(),
                   .head_only = message.method() == beast_http::verb::head,
                   .may_chunk = current};
  read.request.body = std::move(message.body());
  return read;
}

std::optional<Request> RequestReader::take_head() {
  if (head_taken_ || !head_read_ || parser_->is_done()) return std::nullopt;
  head_taken_ = true;
  return head_;
}

bool RequestReader::awaits_continue() {
  if (continue_sent_ || !parser_->is_header_done() || parser_->is_done()) return false;
  continue_sent_ = boost::beast::iequals(parser_->get()[beast_http::field::expect], "100-continue");
  return continue_sent_;
}

RequestReader::Progress RequestReader::fail(int status, std::string what) {
  fault_ = {.status = status, .what = std::move(what)};
  return Progress::kFault;
}

/// A body type for Beast's parser that hands each piece on.
struct ResponseReader::Sink {
  const OnPiece* on_piece = nullptr;
  size_t most = std::numeric_limits<size_t>::max();
  std::string kept;
};

struct ResponseReader::SinkBody {
  using value_type = Sink;

  /// Constructed with the parser, before the header has arrived; init() is called after the header.
  class reader {  // NOLINT(readability-identifier-naming): by this name Beast looks for it
   public:
    template <bool IsRequest, class Fields>
    reader(beast_http::header<IsRequest, Fields>& header, Sink& sink)
        : status_([&header] { return header.result_int(); }), sink_(sink) {}

    void init(const boost::optional<std::uint64_t>&, boost::system::error_code& error) {
      hands_on_ = *sink_.on_piece && status_() < 400;
      error = {};
    }

    template <class Buffers>
    size_t put(const Buffers& buffers, boost::system::error_code& error) {
      error = {};
      size_t size = 0;
      for (const auto buffer : boost::beast::buffers_range_ref(buffers)) {
        const std::string_view piece(static_cast<const char*>(buffer.data()), buffer.size());
        size += piece.size();
        if (!hands_on_ && piece.size() > sink_.most - sink_.kept.size()) {
          error = boost::asio::error::message_size;
          return size;
        } else if (!hands_on_) {
          sink_.kept += piece;
        } else if (!(*sink_.on_piece)(piece)) {
          error = boost::asio::error::operation_aborted;
          return size;
        }
      }
      return size;
    }

    void finish(boost::system::error_code& error) { error = {}; }

   private:
    std::function<unsigned()> status_;
    Sink& sink_;
    bool hands_on_ = false;
  };
};

struct ResponseReader::Parser : beast_http::response_parser<SinkBody> {
  Parser(bool without_body, const OnPiece& receiver) : on_piece(receiver), head_only(without_body) {
    get().body().on_piece = &on_piece;
    body_limit(boost::none);  // our own server: a list of jobs is as long as it is
    eager(true);
    skip(head_only);
  }

  /// Whether this is an interim response, which another one follows.
  bool is_interim() {
    const unsigned status = get().result_int();
    return status >= 100 && status < 200 && status != 101;
  }
  std::unique_ptr<Parser> of_next_response() {
    auto next = std::make_unique<Parser>(head_only, on_piece);
    next->get().body().most = get().body().most;
    return next;
  }

  OnPiece on_piece;
  bool head_only;
};

ResponseReader::ResponseReader(bool head_only, const OnPiece& on_piece)
    : parser_(std::make_unique<Parser>(head_only, on_piece)) {}

ResponseReader::ResponseReader(bool head_only, const OnPiece& on_piece, size_t most)
    : ResponseReader(head_only, on_piece) {
  parser_->get().body().most = most;
}

ResponseReader::~ResponseReader() = default;

base::Result<ResponseReader::Progress> ResponseReader::put(std::string_view bytes) {
  started_ = started_ || !bytes.empty();
  while (true) {
    MUSTER_TRY(const Progress progress, put_once(bytes));
    if (progress != Progress::kDone || !parser_->is_interim()) return progress;
    parser_ = parser_->of_next_response();
    bytes = {};
    if (waiting_.empty()) return Progress::kMore;
  }
}

base::Result<ResponseReader::Progress> ResponseReader::put_once(std::string_view bytes) {
  boost::system::error_code error;
  // Most pieces are not copied. Only the rest that Beast leaves (part of a head or size) is kept.
  if (waiting_.empty()) {
    bytes.remove_prefix(parser_->put(boost::asio::buffer(bytes), error));
    waiting_ = bytes;
  } else {
    waiting_ += bytes;
    waiting_.erase(0, parser_->put(boost::asio::buffer(waiting_), error));
  }
  if (error == boost::asio::error::operation_aborted) return Progress::kLeft;
  if (error == boost::asio::error::message_size) {
    return Error{.code = ErrorCode::kExhausted,
                 .what = "the server's answer is longer than " +
                         std::to_string(parser_->get().body().most) + " bytes"};
  }
  if (error && error != beast_http::error::need_more) {
    return Error{.code = ErrorCode::kInternal,
                 .what = "the server's answer is not HTTP/1.1: " + error.message()};
  }
  return parser_->is_done() ? Progress::kDone : Progress::kMore;
}

base::Result<void> ResponseReader::put_end() {
  boost::system::error_code error;
  const bool has_begun = parser_->got_some();  // of the final response
  if (has_begun) parser_->put_eof(error);
  if (has_begun && !error && parser_->is_done()) return {};
  return Error{.code = ErrorCode::kUnavailable,
               .what = started_ ? "the server closed the connection in the middle of its answer"
                                : "the server closed the connection without an answer",
               .advice = "see the server's log, then try again"};
}

bool ResponseReader::has_head() const {
  return parser_->is_header_done();
}

int ResponseReader::status() const {
  return static_cast<int>(parser_->get().result_int());
}

bool ResponseReader::is_done() const {
  return parser_->is_done();
}

bool ResponseReader::keep_alive() const {
  return parser_->keep_alive() && waiting_.empty();
}

Response ResponseReader::take() {
  auto& message = parser_->get();
  Response response{.status = static_cast<int>(message.result_int()),
                    .content_type = std::string(message[beast_http::field::content_type]),
                    .body = std::move(message.body().kept),
                    .headers = headers_of(message)};
  return response;
}

}  // namespace muster::http
