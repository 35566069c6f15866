#include "engine/container/image_keeper.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/units.h"
#include "engine/container/docker_error.h"
#include "engine/folder/image_account.h"
#include "workspace/small_archive.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using launch::ImageFacts;

/// The contents of an image that tasks need.
struct ImageContents {
  std::string passwd;  ///< content of /etc/passwd; empty: missing
  std::string group;
  std::string sshd;  ///< path of sshd; empty: missing
  bool has_ssh = false;
  bool has_shell = false;
};

/// Reads the contents of an image from a container that is created from it and never started, so no
/// program of the image runs. `done` is called once, later, unless the ImageLook is dropped first.
/// The container gets `labels` and is removed with the ImageLook. `client` must outlive it.
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
  void check_container();
  void finish();
  void fail(base::Error error);

  DockerClient& client_;
  Done done_;  ///< empty after the call
  std::string container_;
  ImageContents contents_;
  int steps_left_ = 0;
  bool lacks_a_file_ = false;
  std::vector<std::shared_ptr<void>> under_way_;
};

/// Work with several waiting callers. It is cancelled when the last of them is dropped.
template <class Value>
struct SharedWork {
  std::vector<std::function<void(const Result<Value>&)>> waiting;
  std::vector<std::function<void(const PullProgress&)>> watching;
  std::shared_ptr<void> under_way;

  void show(const PullProgress& progress) {
    for (const auto& each : watching) each(progress);
  }
  void finish_all(const Result<Value>& result) {
    for (const auto& each : std::exchange(waiting, {})) each(result);
  }
};
using SharedPull = SharedWork<void>;
using SharedLook = SharedWork<ImageContents>;

namespace {

using Progress = std::function<void(const PullProgress&)>;

/// The shared work for `key`; if there is no such work, `begin` starts it.
template <class Value, class Begin>
std::shared_ptr<SharedWork<Value>> join_or_begin(
    std::map<std::string, std::weak_ptr<SharedWork<Value>>>& all, const std::string& key,
    Begin begin) {
  std::erase_if(all, [](const auto& entry) { return entry.second.expired(); });
  if (const auto found = all.find(key); found != all.end()) return found->second.lock();
  auto fresh = std::make_shared<SharedWork<Value>>();
  all[key] = fresh;
  begin(fresh);
  return fresh;
}

/// "localhost:5000" for "localhost:5000/train:1"; "docker.io" for a name without a registry.
std::string registry_of(const std::string& image) {
  const size_t slash = image.find('/');
  const std::string first = image.substr(0, slash == std::string::npos ? 0 : slash);
  const bool is_host = first == "localhost" || first.find_first_of(".:") != std::string::npos;
  return is_host ? first : "docker.io";
}

std::map<std::string, std::string> as_map(const std::vector<std::string>& environment) {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : environment) {
    const size_t equals = std::min(entry.find('='), entry.size());
    variables[entry.substr(0, equals)] = entry.substr(std::min(equals + 1, entry.size()));
  }
  return variables;
}

Result<ImageFacts> facts_of(const ImageRequest& request, const DockerImage& image,
                            const ImageContents& contents) {
  auto account = find_account(request.user.empty() ? image.user : request.user, contents.passwd,
                              contents.group);
  if (!account) {
    Error error = std::move(account).error();
    error.what = "image '" + request.image + "': " + error.what;
    return error;
  }
  return ImageFacts{.image = request.image,
                    .id = image.id,
                    .entrypoint = image.entrypoint,
                    .command = image.command,
                    .environment = as_map(image.environment),
                    .folder = image.folder,
                    .account = *std::move(account),
                    .sshd = contents.sshd,
                    .has_ssh = contents.has_ssh,
                    .has_shell = contents.has_shell};
}

}  // namespace

/// The known images of a host, and the pending pulls and inspections. Callers that wait hold a
/// reference.
struct ImageKeeping : std::enable_shared_from_this<ImageKeeping> {
  ImageKeeping(DockerClient& its_client, std::string its_owner)
      : client(its_client), owner(std::move(its_owner)) {}

  DockerClient& client;
  std::string owner;
  std::string run;  ///< random label that separates its containers from those of earlier runs

  std::map<std::string, ImageContents> known;  ///< by the image's id
  std::map<std::string, std::weak_ptr<SharedPull>> pulls;
  std::map<std::string, std::weak_ptr<SharedLook>> looks;
  bool has_swept = false;

  void sweep() {
    if (std::exchange(has_swept, true)) return;
    client.list({std::string(kOwnerLabel) + "=" + owner, kLookLabel},
                [weak = weak_from_this()](const Result<std::vector<ContainerState>>& left) {
                  if (const auto self = weak.lock()) self->sweep(left);
                });
  }

  void sweep(const Result<std::vector<ContainerState>>& left) {
    has_swept = left.ok();
    if (!left) return;
    for (const ContainerState& each : *left) {
      const auto label = each.labels.find(kLookLabel);
      const bool is_old = label == each.labels.end() || label->second != run;
      if (is_old) client.remove(each.id, [](const Result<void>&) {});
    }
  }

  std::shared_ptr<SharedPull> pull(const ImageRequest& request) {
    RegistryAccess access{
        .server = request.registry, .username = request.username, .password = request.password};
    if (access.server.empty()) access.server = registry_of(request.image);
    // The registry grants pulls by login, so pulls with different logins are not shared.
    const std::string key =
        request.image + '\0' + access.server + '\0' + access.username + '\0' + access.password;
    return join_or_begin(pulls, key, [&](const std::shared_ptr<SharedPull>& fresh) {
      fresh->under_way = client.pull(
          request.image, access,
          [pull = std::weak_ptr(fresh)](const PullProgress& progress) {
            if (const auto self = pull.lock()) self->show(progress);
          },
          [weak = weak_from_this(), key, pull = std::weak_ptr(fresh)](const Result<void>& pulled) {
            const auto waiting = pull.lock();
            // Later callers start a new pull.
            if (const auto self = weak.lock()) self->pulls.erase(key);
            if (waiting) waiting->finish_all(pulled);
          });
    });
  }

  std::shared_ptr<SharedLook> look(const std::string& id) {
    sweep();
    return join_or_begin(looks, id, [&](const std::shared_ptr<SharedLook>& fresh) {
      const Labels labels{{kOwnerLabel, owner}, {kLookLabel, run}};
      fresh->under_way =
          ImageLook::begin(client, id, labels,
                           [weak = weak_from_this(), id,
                            look = std::weak_ptr(fresh)](const Result<ImageContents>& contents) {
                             const auto waiting = look.lock();
                             if (const auto self = weak.lock()) self->looked(id, contents);
                             if (waiting) waiting->finish_all(contents);
                           });
    });
  }

  void looked(const std::string& id, const Result<ImageContents>& contents) {
    constexpr size_t kMost = 1000;
    looks.erase(id);
    if (!contents) return;
    if (known.size() >= kMost) known.clear();
    known[id] = *contents;
  }
};

namespace {

/// The steps of preparing one image. The caller of ImageKeeper::prepare() holds it.
class ImagePreparation : public std::enable_shared_from_this<ImagePreparation> {
 public:
  using Done = std::function<void(Result<ImageFacts>)>;

  ImagePreparation(std::shared_ptr<ImageKeeping> keeping, ImageRequest request,
                   std::string architecture, Progress progress, Done done)
      : keeping_(std::move(keeping)),
        request_(std::move(request)),
        architecture_(std::move(architecture)),
        progress_(std::move(progress)),
        done_(std::move(done)) {}

  void begin() {
    const bool is_fetched =
        request_.pull == job::PullPolicy::kAlways && !is_local_name(request_.image);
    is_fetched ? pull() : inspect(true);
  }

 private:
  void inspect(bool may_pull) {
    keeping_->client.inspect_image(request_.image,
                                   [weak = weak_from_this(), may_pull](Result<DockerImage> image) {
                                     if (const auto self = weak.lock())
                                       self->inspected(std::move(image), may_pull);
                                   });
  }

  void inspected(Result<DockerImage> image, bool may_pull) {
    if (image) return check(*std::move(image));
    if (image.error().code != ErrorCode::kNotFound) {
      return finish(pull_fault(request_, image.error()));
    }
    if (request_.pull == job::PullPolicy::kNever) return finish(image_is_missing(request_));
    if (is_local_name(request_.image)) return finish(local_image_is_missing(request_));
    if (!may_pull) return finish(pull_fault(request_, image.error()));
    pull();
  }

  void pull() {
    pull_ = keeping_->pull(request_);
    pull_->watching.emplace_back([weak = weak_from_this()](const PullProgress& progress) {
      const auto self = weak.lock();
      if (self && self->progress_) self->progress_(progress);
    });
    pull_->waiting.emplace_back([weak = weak_from_this()](const Result<void>& pulled) {
      const auto self = weak.lock();
      if (!self) return;
      pulled ? self->inspect(false) : self->finish(pull_fault(self->request_, pulled.error()));
    });
  }

  void check(const DockerImage& image) {
    pull_.reset();
    const bool fits =
        image.architecture.empty() || architecture_.empty() || image.architecture == architecture_;
    if (!fits) return finish(wrong_processor(request_, image.architecture, architecture_));
    const auto known = keeping_->known.find(image.id);
    if (known != keeping_->known.end()) return finish(facts_of(request_, image, known->second));
    look_ = keeping_->look(image.id);
    look_->waiting.emplace_back(
        [weak = weak_from_this(), image](const Result<ImageContents>& contents) {
          if (const auto self = weak.lock()) self->looked(image, contents);
        });
  }

  void looked(const DockerImage& image, const Result<ImageContents>& contents) {
    if (contents) return finish(facts_of(request_, image, *contents));
    Error error = contents.error();
    error.what =
        "node '" + request_.node + "' cannot inspect image '" + request_.image + "': " + error.what;
    finish(std::move(error));
  }

  void finish(Result<ImageFacts> result) {
    look_.reset();
    if (const Done done = std::exchange(done_, {})) done(std::move(result));
  }

  std::shared_ptr<ImageKeeping> keeping_;
  ImageRequest request_;
  std::string architecture_;
  Progress progress_;
  Done done_;
  std::shared_ptr<SharedPull> pull_;
  std::shared_ptr<SharedLook> look_;
};

}  // namespace

struct ImageKeeper::Impl {
  std::shared_ptr<ImageKeeping> keeping;
};

ImageKeeper::ImageKeeper(base::EventLoop& loop, DockerClient& client, std::string owner)
    : impl_(new Impl{std::make_shared<ImageKeeping>(client, std::move(owner))}) {
  static_cast<void>(loop);  // all waiting is done by the client
  base::SystemRandom random;
  impl_->keeping->run = base::random_name(random, 12);
}

ImageKeeper::~ImageKeeper() = default;

std::shared_ptr<void> ImageKeeper::prepare(const ImageRequest& request,
                                           const std::string& architecture, Progress progress,
                                           std::function<void(Result<ImageFacts>)> done) {
  const auto preparation = std::make_shared<ImagePreparation>(impl_->keeping, request, architecture,
                                                              std::move(progress), std::move(done));
  preparation->begin();
  return preparation;
}

namespace {

/// The limit for a file of an image that is read (passwd, group).
constexpr size_t kMostFile = 4 << 20;
constexpr int kMostLinks = 5;

/// The target of a link at `path`, resolved from the link's folder.
std::string end_of_link(const std::string& path, const std::string& link) {
  return (std::filesystem::path(path).parent_path() / link).lexically_normal().string();
}

}  // namespace

std::shared_ptr<ImageLook> ImageLook::begin(DockerClient& client, const std::string& image,
                                            const Labels& labels, Done done) {
  const std::shared_ptr<ImageLook> look(new ImageLook(client, std::move(done)));
  // A container of an image without a command needs an entrypoint.
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
  // If this fails, a later sweep finds the container by its labels.
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
        self->lacks_a_file_ = true;
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
                 if (!facts) self->lacks_a_file_ = true;
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
  lacks_a_file_ ? check_container() : finish();
}

/// An engine gives the same answer for a file that the image lacks and for a container that another
/// program has removed, such as `docker container prune`.
void ImageLook::check_container() {
  client_.inspect(container_, [weak = weak_from_this()](const Result<ContainerState>& state) {
    const auto self = weak.lock();
    if (!self || !self->done_) return;
    if (state) return self->finish();
    Error error = state.error();
    if (error.code == ErrorCode::kNotFound) {
      error = {.code = ErrorCode::kUnavailable,
               .what = "another program has removed the container in which it was inspected",
               .advice = "exclude containers with the label org.muster.owner from clean-ups"};
    }
    self->fail(std::move(error));
  });
}

void ImageLook::finish() {
  const Done done = std::exchange(done_, {});
  done(std::move(contents_));
}

void ImageLook::fail(Error error) {
  if (!done_) return;
  const Done done = std::exchange(done_, {});
  done(std::move(error));
}

}  // namespace muster::engine
