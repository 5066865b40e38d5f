# Completion of the glassbox command for bash; needs nothing but bash.
# To try it: source completions/glassbox.bash

# Options of a command, one word each: "=" after those with a value, "[=]" where it may be left out.
_glassbox_options() {
    local general='-? --help --usage'
    local filters='--kernel= --func= --task= --arg= --role= --stage= --kind= --dtype='
    case $1 in
    run)
        echo '--case= -p= --platform= --runtime= --blocks= --threads= --device= --build= --window= --gm=' \
            '--no-golden --rounds= --timeout= --json -v --verbose --dump-tensor[=] --dump-args --dump-filter=' \
            '--dump-stats --dump-max-tensor= --no-dedup -o= --output= --dump-arena= --dump-buffers=' \
            "--dump-stall-timeout= $general"
        ;;
    view)
        echo '--index= --full --stats --sort= --limit= --json --export --format= --as=' "$filters $general"
        ;;
    export) echo "--format= -o= --output= --as= $filters $general" ;;
    diff) echo "--atol= --rtol= --ulp= --strict-nan --json $filters $general" ;;
    check) echo "--scene= --kernel= --task= --timeout= --json $general" ;;
    replay)
        echo "--task= --dispatch= --kernel= --gdb --repeat= --save= --trust --timeout= --json $general"
        ;;
    audit | verify | platforms) echo "--json $general" ;;
    recover | version) echo "$general" ;;
    esac
}

# Values of an option where they are few; $1 is the command.
_glassbox_values() {
    local numbers='float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool'
    local keys='index task kernel arg dtype bytes elements time min max mean nan inf'
    case $2 in
    -p | --platform) echo a2a3sim a5sim ;;
    --runtime) echo tensormap_and_ringbuffer aicpu_build_graph host_build_graph ;;
    --device) echo process thread ;;
    --build) echo concurrent sequential ;;
    --case) echo all ;;
    --dump-tensor) echo full partial hybrid stats ;;
    --format) if [[ $1 == export ]]; then echo npz simpler; else echo txt npy csv; fi ;;
    --role) echo input output inout ;;
    --stage) echo before_dispatch after_completion ;;
    --kind) echo tensor scalar ;;
    --as) echo "$numbers" ;;
    --dtype) echo "$numbers" bfloat16 float8_e4m3 float8_e5m2 int4 ;;
    --sort) if [[ $3 == -* ]]; then echo "-${keys// / -}"; else echo "$keys"; fi ;;
    esac
}

# The words up to the cursor as the command gets them, into `words`: bash cuts them at "=" and ":" as well, and
# what it replaces is the last piece alone. `cut` is the length of the last word before that.
_glassbox_words() {
    local line=${COMP_LINE:0:COMP_POINT} blanks word i
    words=()
    for ((i = 0; i <= COMP_CWORD; ++i)); do
        blanks=${line%%[![:space:]]*}
        line=${line:${#blanks}}
        word=${COMP_WORDS[i]:0:${#line}}
        line=${line:${#word}}
        if ((i == 0)) || [[ $blanks ]]; then
            words+=("$word")
        else
            words[-1]+=$word
        fi
    done
    [[ $word == [=:]* ]] && word=''
    cut=$((${#words[-1]} - ${#word}))
}

# Sets `plain` to the text without its quotes; the last one need not be closed.
_glassbox_unquote() {
    local text=$1 quote='' character i
    plain=''
    for ((i = 0; i < ${#text}; ++i)); do
        character=${text:i:1}
        if [[ $character == "\\" && $quote != "'" ]]; then
            i=$((i + 1))
            plain+=${text:i:1}
        elif [[ $quote && $character == "$quote" ]]; then
            quote=''
        elif [[ ! $quote && $character == [\"\'] ]]; then
            quote=$character
        else
            plain+=$character
        fi
    done
}

# Whether the command $1 takes the option $2; $3 is "=" for one with a value, "[=]" for one that may have it.
_glassbox_takes() {
    [[ " $(_glassbox_options "$1") " == *" $2$3 "* ]]
}

# The first word before the last that is neither an option nor its value, such as a dump, into `argument`.
_glassbox_find_argument() {
    local i plain
    argument=''
    for ((i = 2; i < ${#words[@]} - 1; ++i)); do
        if [[ ${words[i]} != -* ]]; then
            _glassbox_unquote "${words[i]}"
            argument=${plain/#\~\//$HOME/}
            return
        fi
        _glassbox_takes "${words[1]}" "${words[i]}" = && i=$((i + 1))
    done
}

# Kernels of the dump that the line names, or of the latest; nothing where there is none.
_glassbox_kernels() {
    local line argument plain limit=() name='^\{"func_id":[0-9]+,"name":"([[:alnum:]_.:+/-]+)"'
    _glassbox_find_argument
    _glassbox_unquote "${words[0]}"
    type -P timeout >/dev/null && limit=(timeout 2)
    "${limit[@]}" "${plain/#\~\//$HOME/}" view ${argument:+"$argument"} --json --limit 1 2>/dev/null </dev/null |
        while IFS= read -r line && [[ $line != '"tensors"'* ]]; do
            [[ $line =~ $name ]] && echo "${BASH_REMATCH[1]}"
        done
}

# Offers $1 and each further word together, where they go on from what was typed. What bash does not replace of
# the word, the first `cut` characters, is left out.
_glassbox_offer() {
    local lead=$1 plain word
    _glassbox_unquote "${words[-1]}"
    shift
    for word; do
        [[ $lead$word == "$plain"* ]] && COMPREPLY+=("${lead:cut}${word:cut > ${#lead} ? cut - ${#lead} : 0}")
    done
}

# Directories (d), or files as well (f), that begin with $3; $2 stands before them.
_glassbox_offer_paths() {
    local plain path
    _glassbox_unquote "$3"
    while IFS= read -r path; do
        [[ $path ]] && COMPREPLY+=("${2:cut}$path")
    done < <(compgen "-$1" -- "$plain")
    compopt -o filenames 2>/dev/null
}

# Of directories, those that are scenes or lead to one; all of them where none is.
_glassbox_keep_scenes() {
    local directory path file kept=()
    shopt -u failglob
    for directory; do
        path=${directory/#\~\//$HOME/}
        for file in "$path"/scene.json "$path"/*/scene.json "$path"/*/*/scene.json; do
            [[ -f $file ]] && kept+=("$directory") && break
        done
    done
    if ((${#kept[@]})); then printf '%s\n' "${kept[@]}"; else printf '%s\n' "$@"; fi
}

# Scenes that begin with $2; $1 stands before them.
_glassbox_offer_scenes() {
    local plain
    _glassbox_unquote "$2"
    if [[ $plain == */ && -f ${plain/#\~\//$HOME/}scene.json ]]; then
        COMPREPLY=("${1:cut}${plain}scene.json")
        compopt -o filenames 2>/dev/null
        return
    fi
    _glassbox_offer_paths d "$1" "$2"
    ((${#COMPREPLY[@]})) && mapfile -t COMPREPLY < <(_glassbox_keep_scenes "${COMPREPLY[@]}")
}

# KEY=VALUE,KEY=VALUE...: keys, then values; $1 stands before them.
_glassbox_offer_filter() {
    local plain last values
    _glassbox_unquote "$2"
    last=${plain##*,}
    plain=${plain:0:${#plain} - ${#last}}
    if [[ $last == *=* ]]; then
        read -ra values <<<"$(_glassbox_values run "--${last%%=*}")"
        _glassbox_offer "$1$plain${last%%=*}=" "${values[@]}"
    else
        _glassbox_offer "$1$plain" kernel= func= task= arg= role= stage= kind= dtype=
        compopt -o nospace 2>/dev/null
    fi
}

# Values of the option $2 of the command $1; $3 stands before them, $4 is what was typed.
_glassbox_offer_values() {
    local values
    case $1$2 in
    run-o | run--output | replay--save) _glassbox_offer_paths d "$3" "$4" ;;
    export-o | export--output) _glassbox_offer_paths f "$3" "$4" ;;
    check--scene) _glassbox_offer_scenes "$3" "$4" ;;
    replay--kernel) _glassbox_offer_paths f "$3" "$4" ;;
    run--dump-filter) _glassbox_offer_filter "$3" "$4" ;;
    *--kernel)
        mapfile -t values < <(_glassbox_kernels)
        _glassbox_offer "$3" "${values[@]}"
        ;;
    *)
        read -ra values <<<"$(_glassbox_values "$1" "$2" "$4")"
        _glassbox_offer "$3" "${values[@]}"
        ;;
    esac
}

_glassbox_offer_options() {
    local options option
    read -ra options <<<"$(_glassbox_options "$1")"
    for option in "${options[@]}"; do
        case $option in
        *'[=]') _glassbox_offer '' "${option%'[=]'}" "${option%'[=]'}=" ;;
        --*) _glassbox_offer '' "$option" ;;
        *) _glassbox_offer '' "${option%=}" ;;
        esac
    done
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
}

_glassbox() {
    local words=() cut command last previous
    COMPREPLY=()
    _glassbox_words
    last=${words[-1]}
    command=${words[1]}
    previous=${words[-2]}
    if ((${#words[@]} == 2)) || { ((${#words[@]} == 3)) && [[ $command == help ]]; }; then
        _glassbox_offer '' run view check replay diff audit verify export recover platforms version help
        ((${#words[@]} == 2)) && [[ $last == -* ]] && _glassbox_offer '' --help --version
    elif [[ $last == --*=* ]]; then
        _glassbox_takes "$command" "${last%%=*}" = || _glassbox_takes "$command" "${last%%=*}" '[=]' || return
        _glassbox_offer_values "$command" "${last%%=*}" "${last%%=*}=" "${last#*=}"
    elif [[ $previous == -* ]] && _glassbox_takes "$command" "$previous" =; then
        _glassbox_offer_values "$command" "$previous" '' "$last"
    elif [[ $last == -* ]]; then
        _glassbox_offer_options "$command"
    else
        case $command in
        run) _glassbox_offer_scenes '' "$last" ;;
        view | check | replay | diff | audit | verify | export | recover) _glassbox_offer_paths d '' "$last" ;;
        esac
    fi
}

complete -F _glassbox glassbox
