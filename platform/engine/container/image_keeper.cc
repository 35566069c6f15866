#include "engine/container/image_keeper.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/random.h"
#include "engine/container/image_look.h"
#include "engine/container/passwd_file.h"
#include "engine/container/pull_fault.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using launch::ImageFacts;

/// Something that several wait for, and that goes on as long as one of them does.
template <class Value>
struct SharedWork {
  std::vector<std::function<void(const Result<Value>&)>> waiting;
  std::vector<std::function<void(const PullProgress&)>> watching;
  std::shared_ptr<void> under_way;

  void show(const PullProgress& progress) {
    for (const auto& each : watching) each(progress);
  }
  void tell(const Result<Value>& result) {
    for (const auto& each : std::exchange(waiting, {})) each(result);
  }
};
using SharedPull = SharedWork<void>;
using SharedLook = SharedWork<ImageContents>;

namespace {

using Progress = std::function<void(const PullProgress&)>;

/// That of `key`, or a new one, which `begin` starts.
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

/// "localhost:5000" of "localhost:5000/train:1"; a name without a registry is Docker Hub's.
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

Result<ImageFacts> facts_of(const ImageWish& wish, const DockerImage& image,
                            const ImageContents& contents) {
  auto account =
      find_account(wish.user.empty() ? image.user : wish.user, contents.passwd, contents.group);
  if (!account) {
    Error error = std::move(account).error();
    error.what = "image '" + wish.image + "': " + error.what;
    return error;
  }
  return ImageFacts{.image = wish.image,
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

/// What the keeper of a host knows, and what is under way there. Held by those who wait for it.
struct ImageKeeping : std::enable_shared_from_this<ImageKeeping> {
  ImageKeeping(DockerClient& its_client, std::string its_owner)
      : client(its_client), owner(std::move(its_owner)) {}

  DockerClient& client;
  std::string owner;
  std::string run;  ///< tells what it makes from what an earlier one has left

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

  std::shared_ptr<SharedPull> pull(const ImageWish& wish) {
    RegistryAccess access{
        .server = wish.registry, .username = wish.username, .password = wish.password};
    if (access.server.empty()) access.server = registry_of(wish.image);
    // Who may fetch an image is the registry's to say: a fetch by another login is another.
    const std::string key =
        wish.image + '\0' + access.server + '\0' + access.username + '\0' + access.password;
    return join_or_begin(pulls, key, [&](const std::shared_ptr<SharedPull>& fresh) {
      fresh->under_way = client.pull(
          wish.image, access,
          [pull = std::weak_ptr(fresh)](const PullProgress& progress) {
            if (const auto self = pull.lock()) self->show(progress);
          },
          [weak = weak_from_this(), key, pull = std::weak_ptr(fresh)](const Result<void>& pulled) {
            const auto waiting = pull.lock();
            // Whoever comes from now on begins anew.
            if (const auto self = weak.lock()) self->pulls.erase(key);
            if (waiting) waiting->tell(pulled);
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
                             if (waiting) waiting->tell(contents);
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

/// What is done for one wish, step by step. Whoever wishes holds it.
class ImagePreparation : public std::enable_shared_from_this<ImagePreparation> {
 public:
  using Done = std::function<void(Result<ImageFacts>)>;

  ImagePreparation(std::shared_ptr<ImageKeeping> keeping, ImageWish wish, std::string architecture,
                   Progress progress, Done done)
      : keeping_(std::move(keeping)),
        wish_(std::move(wish)),
        architecture_(std::move(architecture)),
        progress_(std::move(progress)),
        done_(std::move(done)) {}

  void begin() {
    const bool is_fetched = wish_.pull == job::PullPolicy::kAlways && !is_local_name(wish_.image);
    is_fetched ? pull() : inspect(true);
  }

 private:
  void inspect(bool may_pull) {
    keeping_->client.inspect_image(wish_.image,
                                   [weak = weak_from_this(), may_pull](Result<DockerImage> image) {
                                     if (const auto self = weak.lock())
                                       self->inspected(std::move(image), may_pull);
                                   });
  }

  void inspected(Result<DockerImage> image, bool may_pull) {
    if (image) return check(*std::move(image));
    if (image.error().code != ErrorCode::kNotFound) return finish(pull_fault(wish_, image.error()));
    if (wish_.pull == job::PullPolicy::kNever) return finish(image_is_missing(wish_));
    if (is_local_name(wish_.image)) return finish(local_image_is_missing(wish_));
    if (!may_pull) return finish(pull_fault(wish_, image.error()));
    pull();
  }

  void pull() {
    pull_ = keeping_->pull(wish_);
    pull_->watching.emplace_back([weak = weak_from_this()](const PullProgress& progress) {
      const auto self = weak.lock();
      if (self && self->progress_) self->progress_(progress);
    });
    pull_->waiting.emplace_back([weak = weak_from_this()](const Result<void>& pulled) {
      const auto self = weak.lock();
      if (!self) return;
      pulled ? self->inspect(false) : self->finish(pull_fault(self->wish_, pulled.error()));
    });
  }

  void check(const DockerImage& image) {
    pull_.reset();
    const bool fits =
        image.architecture.empty() || architecture_.empty() || image.architecture == architecture_;
    if (!fits) return finish(wrong_processor(wish_, image.architecture, architecture_));
    const auto known = keeping_->known.find(image.id);
    if (known != keeping_->known.end()) return finish(facts_of(wish_, image, known->second));
    look_ = keeping_->look(image.id);
    look_->waiting.emplace_back(
        [weak = weak_from_this(), image](const Result<ImageContents>& contents) {
          if (const auto self = weak.lock()) self->looked(image, contents);
        });
  }

  void looked(const DockerImage& image, const Result<ImageContents>& contents) {
    if (contents) return finish(facts_of(wish_, image, *contents));
    Error error = contents.error();
    error.what =
        "node '" + wish_.node + "' cannot look into image '" + wish_.image + "': " + error.what;
    finish(std::move(error));
  }

  void finish(Result<ImageFacts> result) {
    look_.reset();
    if (const Done done = std::exchange(done_, {})) done(std::move(result));
  }

  std::shared_ptr<ImageKeeping> keeping_;
  ImageWish wish_;
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
  static_cast<void>(loop);  // whatever is waited for is the client's
  base::SystemRandom random;
  impl_->keeping->run = base::random_name(random, 12);
}

ImageKeeper::~ImageKeeper() = default;

std::shared_ptr<void> ImageKeeper::prepare(const ImageWish& wish, const std::string& architecture,
                                           Progress progress,
                                           std::function<void(Result<ImageFacts>)> done) {
  const auto preparation = std::make_shared<ImagePreparation>(impl_->keeping, wish, architecture,
                                                              std::move(progress), std::move(done));
  preparation->begin();
  return preparation;
}

}  // namespace muster::engine
