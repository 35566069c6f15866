#include "http/response_reader.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/optional.hpp>
#include <limits>
#include <utility>

#include "http/beast_headers.h"

namespace muster::http {

namespace beast_http = boost::beast::http;
using base::Error;
using base::ErrorCode;

/// A body in Beast's terms: what the parser does with each piece as it comes.
struct ResponseReader::Sink {
  const OnPiece* on_piece = nullptr;
  size_t most = std::numeric_limits<size_t>::max();
  std::string kept;
};

struct ResponseReader::SinkBody {
  using value_type = Sink;

  /// Made with the parser, before there is a header; init() comes after it.
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
  Parser(bool head_only, const OnPiece& receiver) : on_piece(receiver) {
    get().body().on_piece = &on_piece;
    body_limit(boost::none);  // our own server: a list of jobs is as long as it is
    eager(true);
    skip(head_only);
  }
  OnPiece on_piece;
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
  boost::system::error_code error;
  // Most pieces need no copy: only what Beast leaves (half a head, half a chunk's size) is kept.
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
                 .what = "the server's answer is no HTTP/1.1: " + error.message()};
  }
  return parser_->is_done() ? Progress::kDone : Progress::kMore;
}

base::Result<void> ResponseReader::put_end() {
  boost::system::error_code error;
  if (started_) parser_->put_eof(error);
  if (started_ && !error && parser_->is_done()) return {};
  return Error{.code = ErrorCode::kUnavailable,
               .what = started_ ? "the server went away in the midst of its answer"
                                : "the server went away without an answer",
               .advice = "see the server's log, then try again"};
}

bool ResponseReader::has_head() const {
  return parser_->is_header_done();
}

int ResponseReader::status() const {
  return static_cast<int>(parser_->get().result_int());
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
