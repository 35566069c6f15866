// What an image holds, looked up in a container that is made of it and never started: nothing of
// the image runs.
//
// On the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/container/docker_client.h"
#include "engine/container/labels.h"

namespace muster::engine {

struct ImageContents {
  std::string passwd;  ///< /etc/passwd; empty: it has none
  std::string group;
  std::string sshd;  ///< path of its sshd; empty: it has none
  bool has_ssh = false;
  bool has_shell = false;
};

/// Looks into the image `id`; `done` is called once, later, unless the look is dropped first. The
/// container has `labels`, and goes with the look in any case. `client` must outlive it.
class ImageLook : public std::enable_shared_from_this<ImageLook> {
 public:
  using Done = std::function<void(Result<ImageContents>)>;

  static std::shared_ptr<ImageLook> begin(DockerClient& client, const std::string& image,
                                          const Labels& labels, Done done);
  ~ImageLook();
  ImageLook(const ImageLook&) = delete;
  ImageLook& operator=(const ImageLook&) = delete;

 private:
  ImageLook(DockerClient& client, Done done);
  void look();
  void read(const std::string& path, std::string ImageContents::* target, int links_left);
  void take(const std::string& path, const std::string& tar, std::string ImageContents::* target,
            int links_left);
  void probe(std::vector<std::string> paths, std::function<void(const std::string&)> found);
  void step_done();
  void fail(base::Error error);

  DockerClient& client_;
  Done done_;  ///< empty: it was called
  std::string container_;
  ImageContents contents_;
  int steps_left_ = 0;
  std::vector<std::shared_ptr<void>> under_way_;
};

}  // namespace muster::engine
