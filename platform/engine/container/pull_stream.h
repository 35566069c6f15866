// What an engine tells while it pulls an image: one JSON object a line, of one layer each. A pull
// that fails says so in the midst of an answer that began well.
//
// No I/O; not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/container/docker_values.h"
#include "engine/container/json_lines.h"

namespace muster::engine {

/// The parts of an image's name, as a pull asks for them.
struct ImageName {
  std::string name;  ///< with the registry
  std::string tag;   ///< or digest; "latest" where none is given

  bool operator==(const ImageName&) const = default;
};
ImageName parse_image_name(const std::string& image);

class PullStream {
 public:
  explicit PullStream(std::function<void(const PullProgress&)> on_progress)
      : on_progress_(std::move(on_progress)) {}

  /// kInternal: this is not what engines tell.
  base::Result<void> put(std::string_view bytes);
  /// The last words, where the stream has ended with a line without an end.
  base::Result<void> put_end();
  /// What went wrong, in the engine's words; empty: nothing so far.
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
