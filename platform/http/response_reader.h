// Makes one response out of the bytes of a connection; hands its body on piece by piece, or keeps
// it whole.
//
// No I/O; not thread-safe. Beast's parser stays inside response_reader.cc.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message.h"

namespace muster::http {

/// Returns false to have no more.
using OnPiece = std::function<bool(std::string_view)>;

class ResponseReader {
 public:
  enum class Progress { kMore, kDone, kLeft };  ///< kLeft: on_piece has had enough

  /// `on_piece` may be empty: then the body is kept. So it is for a status of 400 and more.
  ResponseReader(bool head_only, const OnPiece& on_piece);
  /// Keeps `most` bytes of a body; of a longer one nothing more is taken: kExhausted.
  ResponseReader(bool head_only, const OnPiece& on_piece, size_t most);
  ~ResponseReader();

  /// kInternal: these bytes are no HTTP response.
  base::Result<Progress> put(std::string_view bytes);
  /// The connection has ended. kUnavailable: in the midst of the response.
  base::Result<void> put_end();

  /// Whether anything of the response has come.
  bool started() const { return started_; }
  /// Whether the status and the headers have come.
  bool has_head() const;
  /// REQUIRES: has_head().
  int status() const;
  /// What came behind the end of the response. REQUIRES: kDone.
  std::string_view rest() const { return waiting_; }
  /// Whether the connection can take another request. REQUIRES: kDone.
  bool keep_alive() const;
  Response take();

 private:
  struct Sink;
  struct SinkBody;
  struct Parser;
  std::unique_ptr<Parser> parser_;
  std::string waiting_;
  bool started_ = false;
};

}  // namespace muster::http
