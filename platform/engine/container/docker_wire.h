// How an engine's answers are encoded below JSON documents: the version header, dates, framed
// output, JSON lines, and the progress of a pull.
//
// No I/O; not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/container/docker_values.h"

namespace muster::engine {

inline constexpr const char* kOldestApi = "1.40";  ///< Docker 19.03
inline constexpr const char* kNewestApi = "1.51";  ///< Docker 28

/// The version of the Engine API to use: the highest that both sides support. `theirs`: the newest
/// version of the engine, from its answer to a ping. kUnavailable: the version is older than
/// kOldestApi, or malformed. Pure.
base::Result<std::string> choose_api_version(std::string_view theirs);

/// Parses the header "date": seconds since the epoch for "Sun, 06 Nov 1994 08:49:37 GMT", the only
/// form that servers send (RFC 9110, 5.6.7). nullopt for any other form. Pure.
std::optional<int64_t> parse_http_date(std::string_view text);

/// Splits the two outputs of a program that an engine sends over one connection: frames with a
/// header of 8 bytes (which output, number of bytes) and the bytes. The output of a terminal has no
/// frames.
class FrameReader {
 public:
  /// Returns false to stop.
  using OnOutput = std::function<bool(std::string_view bytes, bool is_error)>;

  /// Hands on the content of frames as it arrives, also parts of a frame. kInternal: the bytes are
  /// not frames, and nothing after them can be read.
  base::Result<void> put(std::string_view bytes, const OnOutput& on_output);
  /// Whether the last frame is complete.
  bool at_border() const { return header_size_ == 0 && left_ == 0; }

 private:
  static constexpr size_t kHeader = 8;

  base::Result<void> begin_frame();

  std::array<unsigned char, kHeader> header_{};
  size_t header_size_ = 0;  ///< bytes of the header that have arrived
  uint64_t left_ = 0;       ///< bytes of the frame that have not arrived
  bool is_error_ = false;
};

/// Splits an endless body into lines of one JSON document each.
class JsonLines {
 public:
  /// Returns false to stop.
  using OnLine = std::function<bool(std::string_view line)>;

  /// Hands on each complete line that is not empty. kInternal: a line is too long.
  base::Result<void> put(std::string_view bytes, const OnLine& on_line);
  /// The last line, if the body ended without a line break.
  std::string take_rest();

 private:
  static constexpr size_t kLongest = 4 << 20;

  std::string waiting_;
};

/// The parts of an image's name for a pull.
struct ImageName {
  std::string name;  ///< with the registry
  std::string tag;   ///< or digest; "latest" by default

  bool operator==(const ImageName&) const = default;
};
ImageName parse_image_name(const std::string& image);

/// Parses the answer to a pull: a JSON object for each line and layer. A failed pull reports its
/// error in the middle of an answer that began with status 200.
class PullStream {
 public:
  explicit PullStream(std::function<void(const PullProgress&)> on_progress)
      : on_progress_(std::move(on_progress)) {}

  /// kInternal: the bytes are not a pull's answer.
  base::Result<void> put(std::string_view bytes);
  /// Parses the last line, if the body ended without a line break.
  base::Result<void> put_end();
  /// The error in the engine's words; empty: no error so far.
  const std::string& failure() const { return failure_; }

 private:
  struct Layer {
    int64_t done = 0;
    int64_t all = 0;
  };

  base::Result<void> take(std::string_view line);
  PullProgress progress(std::string status) const;

  std::function<void(const PullProgress&)> on_progress_;
  JsonLines lines_;
  std::map<std::string, Layer> layers_;
  std::string failure_;
};

}  // namespace muster::engine
