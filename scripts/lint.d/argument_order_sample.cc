// What scripts/lint.d/argument_order.py must find, and what it must not. It is never compiled.
#include <memory>
#include <string>
#include <utility>
#include <vector>

int Fill(void** to);
int Count(int& to);
int Look(const int* at);
void Two(int a, int b);
void Take(int status, const void* memory);
template <typename... A>
void Many(const A&...) {}
void Own(std::vector<int> all, size_t count);
void Refer(std::vector<int>&& all, size_t count);

struct Random {
  int operator()();
  int Next();
  int now() const;
  int& state();
};
int Draw(Random* random);
float* Floats(void* memory, int at);
int Use(Random& random, int number);
int Use(Random* random, int number);
int Copied(Random random, int number);
struct Pair {
  Pair(int a, int b);
};
struct Point {
  int x, y;
};

class Reader {
 public:
  int Next() { return ++at_; }
  int at() const { return at_; }
  void Found() {
    Two(Next(), Next());   // found
    Two(Count(at_), at_);  // found
  }
  void NotFound() {
    Two(at(), at_);
    Two(Next(), at());  // It cannot know which members a function changes.
    const int next = Next();
    Two(next, at_);
    Many(Next(), at_);  // The parameter refers to the member.
  }

 private:
  int at_ = 0;
};

void Found(Point point) {
  void* memory = nullptr;
  Take(Fill(&memory), memory);                              // found
  Take(1 + Fill(&memory), static_cast<char*>(memory) + 1);  // found
  Take(point.x > 0 ? Fill(&memory) : 0, memory);            // found
  int n = 0;
  Two(n, Count(n));              // found
  Two(Count(n), Count(n));       // found
  Two(Count(point.x), point.x);  // found
  Two(n = 3, n);                 // found
  Two(n++, n);                   // found
  Random random;
  Two(random(), random());                                     // found
  Two(random.Next(), random.now());                            // found
  const Pair pair(random.Next(), random.Next());               // found
  (void)std::make_unique<Pair>(random.Next(), random.Next());  // found
  std::vector<int> all;
  Own(std::move(all), all.size());                 // found
  const auto closure = [&] { Two(n, Count(n)); };  // found
}

void Found(Random* random) {
  Two(random->Next(), random->now());  // found
  Two(Draw(random), random->Next());   // found
  Two(Draw(random), Draw(random));     // found
  Copied(*random, random->Next());     // found
  Two(Draw(random), Use(*random, 1));  // found
}

void NotFound(Random* random) {
  Use(*random, random->Next());
  Use(random, random->Next());
  Use(random, Draw(random));
  void* memory = nullptr;
  Many(Floats(memory, 0), Floats(memory, 1));
}

void NotFound() {
  void* memory = nullptr;
  const int status = Fill(&memory);
  Take(status, memory);
  int n = 0;
  int other = 0;
  Two(Look(&n), n);
  Two(Count(n), other);
  Two(sizeof(n), Count(n));
  Many(Count(n), n);                      // The parameter refers to n.
  Many([&] { return Count(n); }, n + 1);  // Runs later.
  std::vector<int> all;
  Many(all.begin(), all.end());
  Many(all[0], all.size());
  Refer(std::move(all), all.size());  // Nothing is moved before the call.
  Random random;
  Two(random.now(), random.now());
  Two(random.state(), random.now());  // Only shows a part.
  const Pair pair{random.Next(), random.Next()};  // From left to right.
}
