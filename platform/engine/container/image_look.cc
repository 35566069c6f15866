#include "engine/container/image_look.h"

#include <filesystem>
#include <utility>

#include "workspace/small_archive.h"

namespace muster::engine {

namespace {

using base::Error;
using base::ErrorCode;

constexpr size_t kMostFile = 4 << 20;
constexpr int kMostLinks = 5;

/// Like an engine names paths: a link's end, from the folder of the link.
std::string end_of_link(const std::string& path, const std::string& link) {
  return (std::filesystem::path(path).parent_path() / link).lexically_normal().string();
}

}  // namespace

std::shared_ptr<ImageLook> ImageLook::begin(DockerClient& client, const std::string& image,
                                            const Labels& labels, Done done) {
  const std::shared_ptr<ImageLook> look(new ImageLook(client, std::move(done)));
  // An image without a command needs one to make a container of it.
  const ContainerConfig config{
      .image = image, .entrypoint = {"/muster"}, .labels = labels, .network = "none"};
  client.create(config, [&client, weak = std::weak_ptr(look)](Result<std::string> id) {
    const auto self = weak.lock();
    if (!self) {
      if (id) client.remove(*id, [](const Result<void>&) {});
      return;
    }
    if (!id) return self->fail(std::move(id).error());
    self->container_ = *std::move(id);
    self->look();
  });
  return look;
}

ImageLook::ImageLook(DockerClient& client, Done done) : client_(client), done_(std::move(done)) {}

ImageLook::~ImageLook() {
  // What cannot be removed now is found by its labels later.
  if (!container_.empty()) client_.remove(container_, [](const Result<void>&) {});
}

void ImageLook::look() {
  steps_left_ = 5;
  read("/etc/passwd", &ImageContents::passwd, kMostLinks);
  read("/etc/group", &ImageContents::group, kMostLinks);
  probe({"/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd"},
        [this](const std::string& path) { contents_.sshd = path; });
  probe({"/usr/bin/ssh", "/usr/local/bin/ssh"},
        [this](const std::string&) { contents_.has_ssh = true; });
  probe({"/bin/sh"}, [this](const std::string&) { contents_.has_shell = true; });
}

void ImageLook::read(const std::string& path, std::string ImageContents::* target, int links_left) {
  const auto tar = std::make_shared<std::string>();
  const auto take_piece = [tar](std::string_view piece) {
    if (tar->size() <= kMostFile) tar->append(piece);
  };
  under_way_.push_back(client_.get_archive(
      container_, path, take_piece,
      [weak = weak_from_this(), path, tar, target, links_left](const Result<void>& got) {
        const auto self = weak.lock();
        if (!self || !self->done_) return;
        if (got) return self->take(path, *tar, target, links_left);
        if (got.error().code != ErrorCode::kNotFound) return self->fail(got.error());
        self->step_done();
      }));
}

void ImageLook::take(const std::string& path, const std::string& tar,
                     std::string ImageContents::* target, int links_left) {
  auto entries = workspace::read_archive(tar, kMostFile);
  if (!entries) {
    Error error = std::move(entries).error();
    error.what = path + " of the image: " + error.what;
    return fail(std::move(error));
  }
  if (!entries->empty() && !entries->front().link.empty() && links_left > 0) {
    return read(end_of_link(path, entries->front().link), target, links_left - 1);
  }
  if (!entries->empty()) contents_.*target = std::move(entries->front().content);
  step_done();
}

void ImageLook::probe(std::vector<std::string> paths,
                      std::function<void(const std::string&)> found) {
  if (paths.empty()) return step_done();
  const std::string path = paths.front();
  paths.erase(paths.begin());
  client_.stat(container_, path,
               [weak = weak_from_this(), path, paths = std::move(paths),
                found = std::move(found)](const Result<PathFacts>& facts) {
                 const auto self = weak.lock();
                 if (!self || !self->done_) return;
                 if (!facts && facts.error().code != ErrorCode::kNotFound) {
                   return self->fail(facts.error());
                 }
                 constexpr uint32_t kExecutable = 0111;
                 const bool is_program = facts && !facts->is_folder &&
                                         (!facts->link.empty() || (facts->mode & kExecutable) != 0);
                 if (!is_program) return self->probe(paths, found);
                 found(path);
                 self->step_done();
               });
}

void ImageLook::step_done() {
  if (--steps_left_ > 0) return;
  const Done done = std::exchange(done_, {});
  done(std::move(contents_));
}

void ImageLook::fail(Error error) {
  if (!done_) return;
  const Done done = std::exchange(done_, {});
  done(std::move(error));
}

}  // namespace muster::engine
