#include "replay/sanitize/foreign.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* --- what a kernel calls --- */

/* What the loader has of an object. */
typedef struct object {
    const struct link_map *map;
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * tables[2]; /* of functions, and of everything else */
    size_t bytes[2];
} object;

static const void *at(const struct link_map *map, const ElfW(Dyn) * entry) {
    ElfW(Addr) address =
        entry->d_un.d_ptr; /* some loaders add where the object lies, some do not */
    return (const void *)(uintptr_t)(address < map->l_addr ? address + map->l_addr : address);
}

static bool open_object(const void *address, object *out) {
    Dl_info about = {0};
    *out = (object){0};
    if (!dladdr1(address, &about, (void **)&out->map, RTLD_DL_LINKMAP))
        return false;
    for (const ElfW(Dyn) *entry = out->map->l_ld; entry->d_tag != DT_NULL; ++entry)
        switch (entry->d_tag) {
        case DT_SYMTAB:
            out->symbols = at(out->map, entry);
            break;
        case DT_STRTAB:
            out->names = at(out->map, entry);
            break;
        case DT_JMPREL:
            out->tables[0] = at(out->map, entry);
            break;
        case DT_PLTRELSZ:
            out->bytes[0] = entry->d_un.d_val;
            break;
        case DT_RELA:
            out->tables[1] = at(out->map, entry);
            break;
        case DT_RELASZ:
            out->bytes[1] = entry->d_un.d_val;
            break;
        default:
            break;
        }
    return out->symbols && out->names;
}

/* The name of a symbol that another object must have, by the number of its place in a table; NULL
 * if it is of this object, or may be missing. */
static const char *needed(const object *of, size_t table, size_t number) {
    const ElfW(Rela) *place = &of->tables[table][number];
    const ElfW(Sym) *symbol =
        &of->symbols[sizeof(ElfW(Addr)) == 8 ? place->r_info >> 32 : place->r_info >> 8];
    const char *name = of->names + symbol->st_name;
    bool is_needed = symbol->st_shndx == SHN_UNDEF && symbol->st_info >> 4 != STB_WEAK;
    return is_needed && name[0] ? name : NULL;
}

/* Whether a function is one of the runtime of the sanitizer, or of this program. */
static bool is_known(const struct link_map *kernel, const char *name) {
    const char *const inits[] = {"__msan_init", "__tsan_init"};
    const void *address = dlsym(RTLD_DEFAULT, name);
    const ElfW(Sym) *symbol = NULL;
    Dl_info about = {0}, program = {0},
            runtime = {0}; /* nothing tells a sanitizer that they are set */
    void *handle = address ? NULL : dlopen(kernel->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle) {
        address = dlsym(handle, name);
        dlclose(handle);
    }
    if (!address || !dladdr1(address, &about, (void **)&symbol, RTLD_DL_SYMENT))
        return false;
    if (symbol && (symbol->st_info & 15) == STT_OBJECT) /* it is not called */
        return true;
    if (dladdr((const void *)(uintptr_t)is_known, &program) && program.dli_fbase == about.dli_fbase)
        return true;
    for (size_t i = 0; i < sizeof inits / sizeof inits[0]; ++i) {
        const void *init = dlsym(RTLD_DEFAULT, inits[i]);
        if (init && dladdr(init, &runtime) && runtime.dli_fbase == about.dli_fbase)
            return true;
    }
    return false;
}

static const char *find(const void *entry, bool (*is_foreign)(const char *name)) {
    object of;
    if (!open_object(entry, &of))
        return NULL;
    for (size_t table = 0; table < 2; ++table)
        for (size_t i = 0; i < of.bytes[table] / sizeof(ElfW(Rela)); ++i) {
            const char *name = needed(&of, table, i);
            if (name && is_foreign(name) && !is_known(of.map, name))
                return name;
        }
    return NULL;
}

/* --- which functions matter --- */

/* Whether `name` is one of the words in `list`, which are separated by spaces; "*" at the end of a
 * word stands for any rest. */
static bool is_in(const char *list, const char *name, size_t length) {
    while (*list) {
        size_t size = strcspn(list, " ");
        bool is_prefix = list[size - 1] == '*';
        if (is_prefix ? length >= size - 1 && strncmp(list, name, size - 1) == 0
                      : length == size && strncmp(list, name, size) == 0)
            return true;
        list += size + (list[size] == ' ');
    }
    return false;
}

/* Functions of the C library that write no memory of a kernel: those of numbers, also for float and
 * long double, */
static const char of_numbers[] =
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 "
    "expm1 fabs fdim floor fma fmax fmin fmod hypot ilogb j0 j1 jn ldexp lgamma llrint llround log "
    "log10 log1p log2 logb lrint lround nearbyint nextafter nexttoward pow remainder rint round "
    "roundeven scalbln scalbn sin sinh sqrt tan tanh tgamma trunc y0 y1 yn "
    "cabs carg ccos cexp cimag clog conj cpow cproj creal csin csqrt ctan __finite __fpclassify "
    "__isinf __isnan __issignaling __signbit";
/* and others. What locks write, no kernel reads. */
static const char of_the_rest[] =
    "abort abs atof atoi atol atoll clock div drand48 exit ffs ffsl ffsll fputc fputs "
    "getenv getpid gettid imaxabs labs ldiv llabs lldiv lrand48 mrand48 nanosleep pthread_self putc putchar puts rand random sched_getcpu sched_yield "
    "sleep srand srand48 srandom strcasecmp strchr strchrnul strcspn strpbrk strrchr strspn strstr "
    "tolower toupper usleep _exit __assert_fail __ctype_* __errno_location __stack_chk_fail "
    "feclearexcept fedisableexcept feenableexcept fegetround feraiseexcept fesetenv fesetround "
    "fetestexcept feupdateenv pthread_barrier_* pthread_cond_* pthread_mutex_* pthread_rwlock_* "
    "pthread_spin_* sem_destroy sem_init sem_post sem_trywait sem_wait mtx_destroy mtx_init "
    "call_once pthread_once mtx_lock mtx_trylock mtx_unlock thrd_yield cnd_*";

static bool may_write(const char *name) {
    size_t length = strlen(name);
    if (is_in(of_the_rest, name, length) || strncmp(name, "__msan_", 7) == 0)
        return false;
    if (strncmp(name, "__", 2) == 0 && length > 9 && strcmp(name + length - 7, "_finite") == 0) {
        name += 2; /* as -ffast-math calls them */
        length -= 9;
    }
    return !is_in(of_numbers, name, length) &&
           !(strchr("fl", name[length - 1]) && is_in(of_numbers, name, length - 1));
}

static bool orders_threads(const char *name) {
    static const char list[] = "call_once cnd_* mtx_* thrd_* tss_* GOMP_* omp_* __kmpc_* syscall "
                               "pthread_barrier_* pthread_cond_* pthread_create pthread_join "
                               "pthread_mutex_* pthread_once pthread_rwlock_* pthread_spin_* sem_*";
    return is_in(list, name, strlen(name));
}

const char *gbx_foreign_to_memory(const void *entry) {
    return find(entry, may_write);
}

const char *gbx_foreign_to_threads(const void *entry) {
    return find(entry, orders_threads);
}
